#include "test/kubelet/fake_kubelet.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "sysfs/fd.h"
#include "sysfs/status.h"
#include "test/kubelet/fake_plugin.h"
#include "test/kubelet/fake_pods.h"

namespace vfio_agent {
namespace {

grpc::Status Unknown(const std::string& text) { return {grpc::StatusCode::UNKNOWN, text}; }

std::shared_ptr<grpc::Channel> Dial(const std::string& path) {
  grpc::ChannelArguments arguments;
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel("unix:" + path, grpc::InsecureChannelCredentials(), arguments);
}

FakeKubelet::Options WithClock(FakeKubelet::Options options) {
  if (!options.clock) options.clock = absl::Now;
  return options;
}

// Whether somebody listens on that socket at this moment.
bool Accepts(const std::string& path) {
  sockaddr_un address = {};
  if (path.size() >= sizeof(address.sun_path)) return false;
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, path.size());
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

}  // namespace

class FakeKubelet::Service final : public v1beta1::Registration::Service {
 public:
  explicit Service(FakeKubelet& kubelet) : kubelet_(kubelet) {}
  grpc::Status Register(grpc::ServerContext* context, const v1beta1::RegisterRequest* request,
                        v1beta1::Empty*) override {
    return kubelet_.Register(*request, absl::FromChrono(context->deadline()));
  }

 private:
  FakeKubelet& kubelet_;
};

size_t FakeResource::Healthy() const {
  return static_cast<size_t>(
      std::ranges::count_if(devices, [](const auto& entry) { return entry.second.healthy; }));
}

FakeKubelet::FakeKubelet(Options options)
    : options_(WithClock(std::move(options))),
      pods_(options_.root_dir.empty() ? nullptr : std::make_unique<FakePods>(options_.root_dir)),
      service_(std::make_unique<Service>(*this)) {
  if (pods_ != nullptr) pods_->TellAllocatable([this] { return AllocatableIds(); });
}

FakeKubelet::~FakeKubelet() { Stop(); }

absl::Status FakeKubelet::Start() {
  SweepDirectory();
  {
    const std::unique_lock lock(mutex_);
    stopping_ = false;
  }
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + options_.dir + "/kubelet.sock",
                           grpc::InsecureServerCredentials());
  builder.RegisterService(service_.get());
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) {
    return absl::UnavailableError(
        absl::StrFormat("cannot listen on %s/kubelet.sock", options_.dir));
  }
  return pods_ == nullptr ? absl::OkStatus() : pods_->Start();
}

absl::Status FakeKubelet::StartPods() { return pods_->Start(); }

void FakeKubelet::Stop(bool killed) {
  if (server_ == nullptr) return;
  if (pods_ != nullptr) pods_->Stop(killed);
  const std::string socket = options_.dir + "/kubelet.sock";
  std::error_code ignored;  // the directory may be gone
  // A gRPC server removes its socket; a kubelet that is killed does not.
  if (killed) std::filesystem::rename(socket, socket + ".kept", ignored);
  std::vector<PluginPtr> all;
  {
    const std::unique_lock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
    for (const PluginPtr& plugin : all_) plugin->list_context.TryCancel();
  }
  server_->Shutdown(absl::ToChronoTime(absl::InfinitePast()));
  server_.reset();
  {
    const std::unique_lock lock(mutex_);
    all.swap(all_);
  }
  for (const PluginPtr& plugin : all) {
    if (plugin->reader.joinable()) plugin->reader.join();
  }
  if (killed) std::filesystem::rename(socket + ".kept", socket, ignored);
  const std::unique_lock lock(mutex_);
  connected_.clear();
  const absl::Time now = options_.clock();
  for (const auto& entry : resources_) remembered_[entry.first] = now;
  resources_.clear();
  changed_.notify_all();
}

grpc::Status FakeKubelet::Register(const v1beta1::RegisterRequest& request, absl::Time deadline) {
  const auto plugin = std::make_shared<Plugin>();
  plugin->resource = request.resource_name();
  plugin->endpoint = request.endpoint();
  const absl::Time now = absl::Now();
  FakeRegisterCall call{.request = request,
                        .at = now,
                        .patience = deadline - now,
                        .listening = Accepts(options_.dir + "/" + plugin->endpoint)};
  const absl::Status admitted = Admit(plugin, deadline, call);
  call.refused = Message(admitted);
  const std::unique_lock lock(mutex_);
  calls_.push_back(std::move(call));
  // After the record: whoever sees the plugin's devices sees its call.
  if (plugin->watched && !ignore_lists_ && !stopping_) {
    plugin->reader = std::thread([this, plugin] { Watch(plugin); });
  }
  changed_.notify_all();
  return admitted.ok() ? grpc::Status::OK : Unknown(Message(admitted));
}

absl::Status FakeKubelet::Admit(const PluginPtr& plugin, absl::Time deadline,
                                FakeRegisterCall& call) {
  {
    const std::unique_lock lock(mutex_);
    ++resources_[plugin->resource].registrations;
    changed_.notify_all();
    const std::string wrong = WhyRefused(call.request);
    if (!wrong.empty()) return absl::UnknownError(wrong);
    if (!Connect(plugin)) return absl::OkStatus();
  }
  const absl::Status dialled = DialBack(*plugin, deadline, call);
  const std::unique_lock lock(mutex_);
  if (!dialled.ok() || stopping_) {
    if (options_.generation == Generation::k137) std::erase(connected_[plugin->resource], plugin);
    return dialled.ok() ? absl::UnknownError("the kubelet is stopping") : dialled;
  }
  FakeResource& resource = resources_[plugin->resource];
  resource.endpoint = plugin->endpoint;
  resource.stopped = false;
  plugin->watched = true;
  return absl::OkStatus();
}

// With mutex_ held, as Connect().
std::string FakeKubelet::WhyRefused(const v1beta1::RegisterRequest& request) const {
  if (stopping_) return "the kubelet is stopping";
  if (!refuse_register_.empty()) return refuse_register_;
  if (request.version() == "v1beta1") return CheckResourceName(request.resource_name());
  return absl::StrFormat(
      "requested API version \"%s\" is not supported by kubelet. Supported version is "
      "[\"v1beta1\"]",
      request.version());
}

// False where the kubelet knows the plugin already and does nothing more about it.
bool FakeKubelet::Connect(const PluginPtr& plugin) {
  std::vector<PluginPtr>& known = connected_[plugin->resource];
  if (options_.generation == Generation::k136) {
    known.clear();  // its stream goes on all the same
  } else if (std::ranges::any_of(
                 known, [&](const PluginPtr& old) { return old->endpoint == plugin->endpoint; })) {
    return false;
  }
  known.push_back(plugin);
  all_.push_back(plugin);
  return true;
}

// False where it takes too long, or the kubelet is stopped meanwhile.
bool FakeKubelet::WaitForDial(Plugin& plugin) {
  const absl::Time limit = absl::Now() + options_.dial_timeout;
  {
    std::unique_lock lock(mutex_);
    const auto delay = absl::ToChronoMilliseconds(std::min(dial_delay_, options_.dial_timeout));
    if (changed_.wait_for(lock, delay, [this] { return stopping_; })) return false;
  }
  while (!plugin.channel->WaitForConnected(
      absl::ToChronoTime(std::min(limit, absl::Now() + absl::Milliseconds(50))))) {
    const std::unique_lock lock(mutex_);
    if (absl::Now() >= limit || stopping_) return false;
  }
  return true;
}

absl::Status FakeKubelet::DialBack(Plugin& plugin, absl::Time deadline, FakeRegisterCall& call) {
  plugin.channel = Dial(options_.dir + "/" + plugin.endpoint);
  plugin.stub = v1beta1::DevicePlugin::NewStub(plugin.channel);
  if (!WaitForDial(plugin)) {
    return absl::UnknownError("failed to dial device plugin: context deadline exceeded");
  }
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(deadline));
  const grpc::Status status =
      plugin.stub->GetDevicePluginOptions(&context, v1beta1::Empty(), &plugin.options);
  call.answered_after = absl::Now() - call.at;
  call.options = plugin.options;
  if (!status.ok()) {
    return absl::UnknownError(
        absl::StrFormat("failed to get device plugin options: %s", status.error_message()));
  }
  std::function<void(Stub&)> probe;
  {
    const std::unique_lock lock(mutex_);
    probe = probe_;
  }
  if (probe) probe(*plugin.stub);
  return absl::OkStatus();
}

void FakeKubelet::Watch(const PluginPtr& plugin) {
  const auto stream = plugin->stub->ListAndWatch(&plugin->list_context, v1beta1::Empty());
  v1beta1::ListAndWatchResponse list;
  while (stream->Read(&list)) TakeList(plugin, list);
  // An error and a clean end are the same to the kubelet.
  StreamEnded(plugin, stream->Finish().error_message());
}

}  // namespace vfio_agent
