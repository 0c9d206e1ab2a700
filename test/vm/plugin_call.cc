// plugin-call: calls on a plugin's socket that the fake kubelet does not make.
//
//   plugin-call allocate SOCKET ID           one Allocate
//   plugin-call race SOCKET PID ID ID [ID ID]...
//                                            for each pair, an Allocate of either on a connection
//                                            of its own; both are at the plugin, process PID,
//                                            before it reads either
//   plugin-call registry DIR RESOURCE COUNT  a kubelet that looks for sockets in DIR, until
//   SIGTERM;
//                                            one line as soon as COUNT devices are healthy
//
// One "key=value ..." line for each answer on stdout; "text" is the last key and goes to the end of
// the line. Exit codes: 0 done, 1 the plugin refused, 2 usage, 4 nobody answers.

#include <fcntl.h>
#include <grpcpp/create_channel_posix.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "proto/deviceplugin_v1beta1.grpc.pb.h"
#include "sysfs/fd.h"
#include "test/kubelet/fake_registry.h"

namespace {

using vfio_agent::FakeRegistry;
using vfio_agent::Fd;
using vfio_agent::RegistryEntries;

constexpr int kRefused = 1;
constexpr int kUsage = 2;
constexpr int kNobody = 4;

constexpr std::chrono::seconds kPatience(20);

// A connection of its own; not valid where nobody listens.
Fd Connect(const std::string& socket) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (socket.size() >= sizeof(address.sun_path)) return Fd();
  std::ranges::copy(socket, address.sun_path);
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto* const peer = reinterpret_cast<const sockaddr*>(&address);
  if (::connect(fd.get(), peer, sizeof(address)) != 0) return Fd();
  return ::fcntl(fd.get(), F_SETFL, O_NONBLOCK) == 0 ? std::move(fd) : Fd();
}

// gRPC closes what it is given, so it gets a copy.
std::shared_ptr<grpc::Channel> ChannelOver(const Fd& connection) {
  return grpc::CreateInsecureChannelFromFd("plugin", ::fcntl(connection.get(), F_DUPFD_CLOEXEC, 0));
}

// An Allocate of one id, from its preparation to its answer.
class Call {
 public:
  Call(Fd connection, std::string id)
      : id_(std::move(id)),
        connection_(std::move(connection)),
        stub_(v1beta1::DevicePlugin::NewStub(ChannelOver(connection_))) {
    v1beta1::AllocateRequest request;
    request.add_container_requests()->add_devices_ids(id_);
    SetDeadline(context_);
    call_ = stub_->PrepareAsyncAllocate(&context_, request, &queue_);
  }

  // A call before: what else is said on a new connection has been said.
  bool WarmUp() {
    grpc::ClientContext context;
    SetDeadline(context);
    v1beta1::DevicePluginOptions options;
    return stub_->GetDevicePluginOptions(&context, v1beta1::Empty(), &options).ok();
  }

  // True where the plugin has something of us still to read.
  bool IsUnread() const {
    int bytes = 0;
    return ::ioctl(connection_.get(), SIOCOUTQ, &bytes) == 0 && bytes > 0;
  }

  void Start() {
    call_->StartCall();
    call_->Finish(&response_, &status_, this);
  }

  // True where the plugin has given the device.
  bool Await() {
    void* tag = nullptr;
    bool ok = false;
    queue_.Next(&tag, &ok);
    return status_.ok();
  }

  void Print() const {
    std::string nodes;
    for (const auto& container : response_.container_responses()) {
      for (const auto& node : container.devices()) {
        nodes.append(nodes.empty() ? "" : ",").append(node.host_path());
      }
    }
    std::printf("id=%s code=%d nodes=%s text=%s\n", id_.c_str(),
                static_cast<int>(status_.error_code()), nodes.c_str(),
                status_.error_message().c_str());
  }

  bool IsUnavailable() const { return status_.error_code() == grpc::StatusCode::UNAVAILABLE; }

 private:
  static void SetDeadline(grpc::ClientContext& context) {
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
  }

  const std::string id_;
  const Fd connection_;
  std::unique_ptr<v1beta1::DevicePlugin::Stub> stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::ClientAsyncResponseReader<v1beta1::AllocateResponse>> call_;
  v1beta1::AllocateResponse response_;
  grpc::Status status_;
};

int Allocate(const std::string& socket, const std::string& id) {
  Fd connection = Connect(socket);
  if (!connection.valid()) return kNobody;
  Call call(std::move(connection), id);
  call.Start();
  const bool given = call.Await();
  call.Print();
  if (given) return 0;
  return call.IsUnavailable() ? kNobody : kRefused;
}

// Polls; false where it does not come true in time.
template <typename Condition>
bool Await(Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// True where every thread of the process has stopped: kill() only asks for it.
bool IsStopped(pid_t process) {
  std::error_code error;
  const std::filesystem::directory_iterator tasks("/proc/" + std::to_string(process) + "/task",
                                                  error);
  if (error) return false;
  return std::all_of(begin(tasks), end(tasks), [](const std::filesystem::directory_entry& task) {
    std::ifstream file(task.path() / "stat");
    std::string line;
    std::getline(file, line);
    const size_t name_end = line.rfind(')');
    return name_end != std::string::npos && line.compare(name_end, 3, ") T") == 0;
  });
}

// Stops the plugin, so that neither call can be ahead of the other, and lets it go on when both are
// there to be read. False where they did not get there.
bool StartBoth(pid_t plugin, Call& first, Call& second) {
  // What is left of the calls before must not be taken for these.
  if (!Await([&] { return !first.IsUnread() && !second.IsUnread(); })) return false;
  if (::kill(plugin, SIGSTOP) != 0 || !Await([&] { return IsStopped(plugin); })) return false;
  first.Start();
  second.Start();
  const bool both = Await([&] { return first.IsUnread() && second.IsUnread(); });
  return ::kill(plugin, SIGCONT) == 0 && both;
}

int RaceOne(const std::string& socket, pid_t plugin, const std::string& one,
            const std::string& other) {
  Fd connections[] = {Connect(socket), Connect(socket)};
  if (!connections[0].valid() || !connections[1].valid()) return kNobody;
  Call first(std::move(connections[0]), one), second(std::move(connections[1]), other);
  if (!first.WarmUp() || !second.WarmUp()) return kNobody;
  if (!StartBoth(plugin, first, second)) return kNobody;
  const int given = (first.Await() ? 1 : 0) + (second.Await() ? 1 : 0);
  first.Print();
  second.Print();
  std::printf("pair=%s,%s given=%d\n", one.c_str(), other.c_str(), given);
  return 0;
}

int Race(const std::string& socket, pid_t plugin, const std::vector<std::string>& ids) {
  int code = 0;
  for (size_t i = 0; i + 1 < ids.size() && code == 0; i += 2) {
    code = RaceOne(socket, plugin, ids[i], ids[i + 1]);
  }
  return code;
}

int WatchRegistry(const std::string& dir, const std::string& resource, size_t count) {
  // Before any thread: they inherit it.
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  FakeRegistry registry({.dir = dir});
  registry.Start();
  const auto ready = [&](const RegistryEntries& entries) {
    const auto entry = entries.find(resource);
    return entry != entries.end() && entry->second.Healthy() == count;
  };
  if (!registry.WaitFor(ready, absl::Seconds(60))) return kNobody;
  const pluginregistration::PluginInfo info = registry.Entries().at(resource).info;
  std::printf("type=%s name=%s endpoint=%s healthy=%zu\n", info.type().c_str(), info.name().c_str(),
              info.endpoint().c_str(), count);
  int signal = 0;
  ::sigwait(&signals, &signal);
  return 0;
}

int Usage() {
  std::fprintf(stderr,
               "usage: plugin-call allocate SOCKET ID | race SOCKET PID ID ID [ID ID]... | "
               "registry DIR RESOURCE COUNT\n");
  return kUsage;
}

// 0 where it is no number.
int ParseNumber(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : 0;
}

}  // namespace

int main(int argc, char** argv) {
  // Readers wait for single lines.
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const std::vector<std::string> args(argv + 1, argv + argc);
  if (args.size() == 3 && args[0] == "allocate") return Allocate(args[1], args[2]);
  if (args.size() >= 5 && args.size() % 2 == 1 && args[0] == "race") {
    // kill() takes 0 and -1 for many.
    const pid_t plugin = ParseNumber(args[2]);
    if (plugin > 1) return Race(args[1], plugin, {args.begin() + 3, args.end()});
  }
  if (args.size() == 4 && args[0] == "registry" && ParseNumber(args[3]) > 0) {
    return WatchRegistry(args[1], args[2], static_cast<size_t>(ParseNumber(args[3])));
  }
  return Usage();
}
