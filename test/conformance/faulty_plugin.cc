// faulty-plugin --dir DIR [--sick FILE] [--fault NAME]...: a device plugin that keeps every rule
// but those that it is told to break, so that the suite can show that it notices.
#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>

#include "absl/strings/str_format.h"
#include "test/conformance/faulty_service.h"

namespace vfio_agent::conformance {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kTick = std::chrono::milliseconds(20);
constexpr auto kPatience = std::chrono::seconds(5);  // for the stream, after Register

// What tells one file from another of the same name; 0 where there is none.
ino_t InodeOf(const std::string& path) {
  struct stat info = {};
  return ::stat(path.c_str(), &info) == 0 ? info.st_ino : 0;
}

class FaultyPlugin {
 public:
  FaultyPlugin(std::string dir, std::string sick, const Faults& faults)
      : dir_(std::move(dir)),
        sick_(std::move(sick)),
        faults_(faults),
        tag_(std::random_device()()),
        widgets_(faults),
        service_(faults, widgets_) {
    // Two lives of one test are never of one pid, nor of two that are so far apart.
    if (faults_.Has("ids-of-one-life")) widgets_.Rename(::getpid() & 0xffff);
  }

  // Serves another resource, and says so on `told` once the kubelet watches it.
  void ServeAnother(int told) {
    resource_ = "example.com/another-widget";
    told_ = told;
    if (!faults_.Has("shared-ids")) widgets_.Rename(31);
  }

  // Until SIGTERM; the exit code.
  int Run(const sigset_t& signals) {
    if (faults_.Has("state-file")) std::ofstream(dir_ + "/state.json") << "{}";
    const timespec tick = {.tv_sec = 0, .tv_nsec = std::chrono::nanoseconds(kTick).count()};
    for (;;) {
      if (::sigtimedwait(&signals, nullptr, &tick) == SIGTERM && !faults_.Has("ignores-term")) {
        return Leave();
      }
      ReadSick();
      if (told_ >= 0 && widgets_.streams() > 0) ::close(std::exchange(told_, -1));
      if (faults_.Has("needs-kubelet") && InodeOf(Kubelet()) == 0) return 1;
      if (server_ == nullptr || Doubtful()) Renew();
      if (registered_ || Clock::now() < next_ || InodeOf(Kubelet()) == 0) continue;
      if (!Register() && faults_.Has("gives-up")) return 1;
    }
  }

 private:
  std::string Kubelet() const { return dir_ + "/kubelet.sock"; }

  void ReadSick() {
    if (sick_.empty() || faults_.Has("ignores-health")) return;
    std::ifstream file(sick_);
    std::set<std::string> ids;
    for (std::string id; file >> id;) ids.insert(id);
    widgets_.SetSick(ids);
  }

  // Whether something casts doubt on the registration.
  bool Doubtful() {
    if (!faults_.Has("blind-for-own-socket") && InodeOf(dir_ + "/" + endpoint_) == 0) return true;
    if (!registered_) return false;
    const ino_t kubelet = InodeOf(Kubelet());
    const bool another = kubelet != 0 && kubelet != kubelet_;
    if (another && !faults_.Has("blind-for-kubelet")) return true;
    if (widgets_.streams() > 0) {
      watched_ = true;
      return false;
    }
    if (faults_.Has("blind-for-streams") || kubelet == 0) return false;
    return watched_ || Clock::now() > registered_at_ + kPatience;
  }

  void Renew() {
    if (server_ != nullptr) next_ = Clock::now() + std::chrono::milliseconds(300);
    StopServer();
    if (faults_.Has("ids-of-one-socket")) widgets_.Rename(++lives_ % 30);
    if (!faults_.Has("same-socket") || endpoint_.empty()) endpoint_ = NewName();
    registered_ = watched_ = false;
    if (!faults_.Has("registers-first")) StartServer();
  }

  std::string NewName() {
    if (faults_.Has("same-name-each-start")) return "widget.sock";
    const std::string filler = faults_.Has("long-socket-name") ? std::string(60, 'n') : "";
    return absl::StrFormat("widget-%08x-%d%s.sock", tag_, ++incarnation_, filler);
  }

  void StartServer() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + dir_ + "/" + endpoint_, grpc::InsecureServerCredentials());
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
  }

  void StopServer() {
    if (server_ == nullptr) return;
    widgets_.EndStreams(true);
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(200));
    server_.reset();
    widgets_.EndStreams(false);
  }

  v1beta1::RegisterRequest Request() const {
    v1beta1::RegisterRequest request;
    request.set_version(faults_.Has("old-version") ? "v1alpha" : "v1beta1");
    request.set_endpoint(faults_.Has("endpoint-with-path") ? "./" + endpoint_ : endpoint_);
    request.set_resource_name(faults_.Has("odd-resource") ? "Example.com/a-widget" : resource_);
    if (!faults_.Has("no-options-sent")) {
      request.mutable_options()->set_pre_start_required(true);
      request.mutable_options()->set_get_preferred_allocation_available(true);
    }
    return request;
  }

  bool Register() {
    kubelet_ = InodeOf(Kubelet());
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto stub = v1beta1::Registration::NewStub(grpc::CreateCustomChannel(
        "unix:" + Kubelet(), grpc::InsecureChannelCredentials(), arguments));
    std::thread late;
    if (faults_.Has("registers-first")) {
      late = std::thread([this] {
        std::this_thread::sleep_for(std::chrono::milliseconds(1500));
        StartServer();
      });
    }
    const int seconds = faults_.Has("short-patience") ? 2 : 15;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(seconds));
    v1beta1::Empty answer;
    widgets_.SetRegistering(true);
    registered_ = stub->Register(&context, Request(), &answer).ok();
    widgets_.SetRegistering(false);
    if (late.joinable()) late.join();
    registered_at_ = Clock::now();
    backoff_ = registered_ || faults_.Has("hammers") ? kTick : std::min(backoff_ * 3, kLongest);
    next_ = Clock::now() + (faults_.Has("hammers") ? kTick : std::max(backoff_, kShortest));
    return registered_;
  }

  int Leave() {
    if (faults_.Has("says-farewell")) {
      widgets_.Empty();
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
    if (faults_.Has("leaves-socket")) ::_exit(0);
    StopServer();
    return 0;
  }

  static constexpr std::chrono::milliseconds kShortest{300}, kLongest{5000};

  const std::string dir_, sick_;
  const Faults& faults_;
  const unsigned tag_;
  Widgets widgets_;
  WidgetService service_;
  std::unique_ptr<grpc::Server> server_;
  std::string endpoint_, resource_ = "example.com/a-widget";
  int told_ = -1;
  int incarnation_ = 0, lives_ = 0;
  bool registered_ = false, watched_ = false;
  ino_t kubelet_ = 0;
  std::chrono::milliseconds backoff_ = kTick;
  Clock::time_point next_, registered_at_;
};

// A second process for another resource. Returns in both; in this one once the other is served.
bool ForkAnother(int& told) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
  const bool another = ::fork() == 0;
  if (another) ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  ::close(ends[another ? 0 : 1]);
  told = ends[another ? 1 : 0];
  char nothing = 0;
  if (!another && ::read(told, &nothing, 1) != 0) return false;
  return another;
}

}  // namespace
}  // namespace vfio_agent::conformance

int main(int argc, char** argv) {
  std::string dir, sick;
  std::vector<std::string> faults;
  CLI::App app("A device plugin with faults on demand.");
  app.add_option("--dir", dir, "the kubelet's device-plugin directory")->required();
  app.add_option("--sick", sick, "a file with the ids of sick devices");
  app.add_option("--fault", faults, "a rule to break; may be given again");
  CLI11_PARSE(app, argc, argv);
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  using vfio_agent::conformance::Faults;
  const Faults asked({faults.begin(), faults.end()});
  int told = -1;
  const bool another = asked.Has("second-resource") && vfio_agent::conformance::ForkAnother(told);
  vfio_agent::conformance::FaultyPlugin plugin(dir, sick, asked);
  if (another) plugin.ServeAnother(told);
  return plugin.Run(signals);
}
