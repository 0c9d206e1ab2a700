#include "test/kubelet/fake_kubelet.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
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
    : options_(std::move(options)),
      pods_(options_.root_dir.empty() ? nullptr : std::make_unique<FakePods>(options_.root_dir)),
      service_(std::make_unique<Service>(*this)) {}

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
  resources_.clear();
  changed_.notify_all();
}

void FakeKubelet::IgnoreLists(bool ignore) {
  const std::unique_lock lock(mutex_);
  ignore_lists_ = ignore;
}

void FakeKubelet::RefuseRegister(std::string text) {
  const std::unique_lock lock(mutex_);
  refuse_register_ = std::move(text);
}

void FakeKubelet::SilencePodResources(bool silent) { pods_->Silence(silent); }

void FakeKubelet::RefusePodResources(std::string text) { pods_->Refuse(std::move(text)); }

void FakeKubelet::SetPod(const std::string& pod_namespace, const std::string& pod,
                         const std::string& container, const std::string& resource,
                         std::vector<std::string> ids) {
  pods_->Set(pod_namespace, pod, container, resource, std::move(ids));
}

bool FakeKubelet::RemovePod(const std::string& pod_namespace, const std::string& pod) {
  return pods_->Remove(pod_namespace, pod);
}

void FakeKubelet::CancelList(const std::string& resource) {
  const std::unique_lock lock(mutex_);
  const auto found = connected_.find(resource);
  if (found != connected_.end() && !found->second.empty()) {
    found->second.back()->list_context.TryCancel();
  }
}

grpc::Status FakeKubelet::Register(const v1beta1::RegisterRequest& request, absl::Time deadline) {
  const auto plugin = std::make_shared<Plugin>();
  plugin->resource = request.resource_name();
  plugin->endpoint = request.endpoint();
  {
    const std::unique_lock lock(mutex_);
    ++resources_[plugin->resource].registrations;
    changed_.notify_all();
    const std::string wrong = WhyRefused(request);
    if (!wrong.empty()) return Unknown(wrong);
    if (!Connect(plugin)) return grpc::Status::OK;
  }
  const absl::Status dialled = DialBack(*plugin, deadline);
  const std::unique_lock lock(mutex_);
  if (!dialled.ok() || stopping_) {
    if (options_.generation == Generation::k137) std::erase(connected_[plugin->resource], plugin);
    return Unknown(Message(dialled));
  }
  FakeResource& resource = resources_[plugin->resource];
  resource.endpoint = plugin->endpoint;
  resource.stopped = false;
  plugin->watched = true;
  if (!ignore_lists_) plugin->reader = std::thread([this, plugin] { Watch(plugin); });
  changed_.notify_all();
  return grpc::Status::OK;
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

absl::Status FakeKubelet::DialBack(Plugin& plugin, absl::Time deadline) {
  plugin.channel = Dial(options_.dir + "/" + plugin.endpoint);
  plugin.stub = v1beta1::DevicePlugin::NewStub(plugin.channel);
  const absl::Time limit = absl::Now() + options_.dial_timeout;
  while (!plugin.channel->WaitForConnected(
      absl::ToChronoTime(std::min(limit, absl::Now() + absl::Milliseconds(50))))) {
    const std::unique_lock lock(mutex_);
    if (absl::Now() < limit && !stopping_) continue;
    return absl::UnknownError("failed to dial device plugin: context deadline exceeded");
  }
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(deadline));
  const grpc::Status status =
      plugin.stub->GetDevicePluginOptions(&context, v1beta1::Empty(), &plugin.options);
  if (status.ok()) return absl::OkStatus();
  return absl::UnknownError(
      absl::StrFormat("failed to get device plugin options: %s", status.error_message()));
}

void FakeKubelet::Watch(const PluginPtr& plugin) {
  const auto stream = plugin->stub->ListAndWatch(&plugin->list_context, v1beta1::Empty());
  v1beta1::ListAndWatchResponse list;
  while (stream->Read(&list)) TakeList(plugin, list);
  stream->Finish();  // an error and a clean end are the same to the kubelet
  StreamEnded(plugin);
}

void FakeKubelet::TakeList(const PluginPtr& plugin, const v1beta1::ListAndWatchResponse& list) {
  std::map<std::string, FakeDevice> devices;
  for (const v1beta1::Device& device : list.devices()) {
    FakeDevice& entry = devices[device.id()];
    entry = {.healthy = device.health() == "Healthy"};
    for (const v1beta1::NUMANode& node : device.topology().nodes()) {
      entry.numa.push_back(node.id());
    }
  }
  const std::unique_lock lock(mutex_);
  FakeResource& resource = resources_[plugin->resource];
  resource.devices = std::move(devices);
  ++resource.messages;
  changed_.notify_all();
}

void FakeKubelet::StreamEnded(const PluginPtr& plugin) {
  const std::unique_lock lock(mutex_);
  if (stopping_) return;
  std::vector<PluginPtr>& known = connected_[plugin->resource];
  if (options_.generation == Generation::k136) {
    // Looked up by name: the plugin that is hit may be another one than the one that ended.
    if (!known.empty()) Disconnect(known.back());
    return;
  }
  if (std::ranges::find(known, plugin) != known.end()) Disconnect(plugin);
}

// With mutex_ held.
void FakeKubelet::Disconnect(const PluginPtr& plugin) {
  plugin->list_context.TryCancel();
  std::vector<PluginPtr>& known = connected_[plugin->resource];
  std::erase(known, plugin);
  FakeResource& resource = resources_[plugin->resource];
  if (known.empty()) {
    resource.stopped = true;
    for (auto& entry : resource.devices) entry.second.healthy = false;
  } else {
    resource.endpoint = known.back()->endpoint;
  }
  changed_.notify_all();
}

FakeResources FakeKubelet::Resources() const {
  const std::unique_lock lock(mutex_);
  return resources_;
}

bool FakeKubelet::WaitFor(const std::function<bool(const FakeResources&)>& wanted,
                          absl::Duration limit) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, absl::ToChronoMilliseconds(limit),
                           [&] { return wanted(resources_); });
}

bool FakeKubelet::WaitHealthy(const std::string& resource, size_t count,
                              absl::Duration limit) const {
  return WaitFor(
      [&](const FakeResources& resources) {
        const auto found = resources.find(resource);
        return (found == resources.end() ? 0 : found->second.Healthy()) == count;
      },
      limit);
}

void FakeKubelet::SweepDirectory() const {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(options_.dir, error)) {
    const bool ours = entry.path().filename() == "kubelet_internal_checkpoint";
    const bool taken = options_.sweep == Sweep::kSockets
                           ? entry.is_socket()
                           : !ours && (entry.is_symlink() || !entry.is_directory());
    if (taken) std::filesystem::remove(entry.path(), error);
  }
}

}  // namespace vfio_agent
