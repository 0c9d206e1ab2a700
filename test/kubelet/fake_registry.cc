#include "test/kubelet/fake_registry.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"

namespace vfio_agent {
namespace {

constexpr absl::Duration kDial = absl::Seconds(10);
constexpr absl::Duration kGetInfo = absl::Seconds(1);
constexpr absl::Duration kNotify = absl::Seconds(5);
constexpr absl::Duration kLongestBackoff = absl::Minutes(2);

std::shared_ptr<grpc::Channel> Dial(const std::string& path, const std::string& authority) {
  grpc::ChannelArguments arguments;
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, authority);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  auto channel =
      grpc::CreateCustomChannel("unix:" + path, grpc::InsecureChannelCredentials(), arguments);
  return channel->WaitForConnected(absl::ToChronoTime(absl::Now() + kDial)) ? channel : nullptr;
}

void SetDeadline(grpc::ClientContext& context, absl::Duration limit) {
  context.set_deadline(absl::ToChronoTime(absl::Now() + limit));
}

}  // namespace

// One registration: a connection to the endpoint and the thread that reads its list.
struct FakeRegistry::Client {
  std::string resource;
  std::unique_ptr<v1beta1::DevicePlugin::Stub> stub;
  grpc::ClientContext context;
  bool connected = true;
  std::thread reader;
};

size_t RegistryEntry::Healthy() const {
  return static_cast<size_t>(
      std::ranges::count_if(healthy, [](const auto& device) { return device.second; }));
}

void FakeRegistry::Start() {
  stopping_ = false;
  thread_ = std::thread([this] { Run(); });
}

void FakeRegistry::Stop() {
  if (!thread_.joinable()) return;
  {
    const std::unique_lock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
  for (const ClientPtr& client : clients_) client->context.TryCancel();
  for (const ClientPtr& client : clients_) client->reader.join();
  const std::unique_lock lock(mutex_);
  clients_.clear();
  sockets_.clear();
  entries_.clear();
}

void FakeRegistry::Run() {
  for (;;) {
    Round();
    std::unique_lock lock(mutex_);
    const auto end = absl::ToChronoTime(absl::Now() + options_.period);
    if (changed_.wait_until(lock, end, [this] { return stopping_; })) return;
  }
}

void FakeRegistry::Round() {
  const std::map<std::string, ino_t> found = Scan();
  std::vector<ClientPtr> gone;
  {
    const std::unique_lock lock(mutex_);
    std::erase_if(sockets_, [&](const auto& known) {
      const auto now = found.find(known.first);
      if (now != found.end() && now->second == known.second.inode) return false;
      if (known.second.client != nullptr) gone.push_back(known.second.client);
      return true;
    });
  }
  for (const auto& [path, inode] : found) {
    Socket socket{.inode = inode, .backoff = options_.first_backoff};
    {
      const std::unique_lock lock(mutex_);
      socket = sockets_.try_emplace(path, socket).first->second;
    }
    if (socket.client != nullptr || absl::Now() < socket.retry_at) continue;
    socket.client = Register(path);
    socket.retry_at = absl::Now() + socket.backoff;
    socket.backoff = std::min(kLongestBackoff, socket.backoff * 2);
    const std::unique_lock lock(mutex_);
    sockets_[path] = socket;
  }
  for (const ClientPtr& client : gone) TakeOut(client);
  const std::unique_lock lock(mutex_);
  changed_.notify_all();
}

std::map<std::string, ino_t> FakeRegistry::Scan() const {
  std::map<std::string, ino_t> found;
  std::error_code error;  // the directory may not be there yet
  for (const auto& entry : std::filesystem::directory_iterator(options_.dir, error)) {
    struct stat info = {};
    const std::string name = entry.path().filename();
    if (name.starts_with(".") || ::stat(entry.path().c_str(), &info) != 0) continue;
    if (S_ISSOCK(info.st_mode)) found[entry.path()] = info.st_ino;
  }
  return found;
}

// Null where it failed; the plugin has been told then.
FakeRegistry::ClientPtr FakeRegistry::Register(const std::string& path) {
  const auto channel =
      Dial(path, options_.encoded_authority ? absl::StrReplaceAll(path, {{"/", "%2F"}}) : path);
  if (channel == nullptr) return nullptr;
  const auto stub = pluginregistration::Registration::NewStub(channel);
  pluginregistration::PluginInfo info;
  grpc::ClientContext asked;
  SetDeadline(asked, kGetInfo);
  if (!stub->GetInfo(&asked, pluginregistration::InfoRequest(), &info).ok()) return nullptr;
  {
    const std::unique_lock lock(mutex_);
    entries_[info.name()].info = info;
  }
  auto client = std::make_shared<Client>();
  const std::string error = TakeIn(info, client);
  pluginregistration::RegistrationStatus told;
  told.set_plugin_registered(error.empty());
  told.set_error(error);
  pluginregistration::RegistrationStatusResponse response;
  grpc::ClientContext notified;
  SetDeadline(notified, kNotify);
  const bool heard = stub->NotifyRegistrationStatus(&notified, told, &response).ok();
  if (!error.empty()) return nullptr;
  const std::unique_lock lock(mutex_);
  if (heard) ++entries_[info.name()].registrations;
  changed_.notify_all();
  return client;
}

// "" or why the plugin is not taken.
std::string FakeRegistry::TakeIn(const pluginregistration::PluginInfo& info,
                                 const ClientPtr& client) {
  if (info.type() != "DevicePlugin") return "no handler registered for plugin type";
  const auto& versions = info.supported_versions();
  if (std::ranges::find(versions, "v1beta1") == versions.end()) return "no supported version";
  if (std::string wrong = CheckResourceName(info.name()); !wrong.empty()) return wrong;
  {
    const std::unique_lock lock(mutex_);
    if (!refuse_.empty()) return refuse_;
  }
  const auto channel = Dial(info.endpoint(), "localhost");
  if (channel == nullptr) return "failed to dial device plugin";
  client->resource = info.name();
  client->stub = v1beta1::DevicePlugin::NewStub(channel);
  grpc::ClientContext context;
  v1beta1::DevicePluginOptions options;
  const grpc::Status status =
      client->stub->GetDevicePluginOptions(&context, v1beta1::Empty(), &options);
  if (!status.ok()) return "failed to get device plugin options: " + status.error_message();
  const std::unique_lock lock(mutex_);
  if (options_.generation == Generation::k136) {
    // Known by its name from now on; an older one's stream goes on all the same.
    for (const ClientPtr& old : clients_) {
      if (old->resource == client->resource) old->connected = false;
    }
  }
  clients_.push_back(client);
  client->reader = std::thread([this, client] { Watch(client); });
  return "";
}

void FakeRegistry::TakeOut(const ClientPtr& client) {
  const std::unique_lock lock(mutex_);
  if (options_.generation == Generation::k137) return client->context.TryCancel();
  for (const ClientPtr& known : clients_) {
    if (known->resource == client->resource && known->connected) known->context.TryCancel();
  }
}

void FakeRegistry::Watch(const ClientPtr& client) {
  const auto stream = client->stub->ListAndWatch(&client->context, v1beta1::Empty());
  v1beta1::ListAndWatchResponse list;
  {
    const std::unique_lock lock(mutex_);
    ++entries_[client->resource].streams;
  }
  while (stream->Read(&list)) {
    const std::unique_lock lock(mutex_);
    auto& healthy = entries_[client->resource].healthy;
    healthy.clear();
    for (const auto& device : list.devices()) healthy[device.id()] = device.health() == "Healthy";
    changed_.notify_all();
  }
  stream->Finish();  // an error and a clean end are the same to the kubelet
  const std::unique_lock lock(mutex_);
  RegistryEntry& entry = entries_[client->resource];
  if (--entry.streams == 0) {
    for (auto& device : entry.healthy) device.second = false;
  }
  if (options_.generation == Generation::k136 && !stopping_) {
    for (const ClientPtr& known : clients_) {
      if (known->resource == client->resource && known->connected) known->context.TryCancel();
    }
  }
  changed_.notify_all();
}

void FakeRegistry::Refuse(std::string text) {
  const std::unique_lock lock(mutex_);
  refuse_ = std::move(text);
}

void FakeRegistry::CancelList(const std::string& resource) {
  const std::unique_lock lock(mutex_);
  for (const ClientPtr& client : clients_) {
    if (client->resource == resource && client->connected) client->context.TryCancel();
  }
}

RegistryEntries FakeRegistry::Entries() const {
  const std::unique_lock lock(mutex_);
  return entries_;
}

std::vector<std::string> FakeRegistry::Sockets() const {
  const std::unique_lock lock(mutex_);
  std::vector<std::string> paths;
  for (const auto& known : sockets_) paths.push_back(known.first);
  return paths;
}

bool FakeRegistry::WaitFor(const std::function<bool(const RegistryEntries&)>& wanted,
                           absl::Duration limit) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, absl::ToChronoMilliseconds(limit),
                           [&] { return wanted(entries_); });
}

bool FakeRegistry::WaitHealthy(const std::string& resource, size_t count,
                               absl::Duration limit) const {
  return WaitFor(
      [&](const RegistryEntries& entries) {
        const auto found = entries.find(resource);
        return (found == entries.end() ? 0 : found->second.Healthy()) == count;
      },
      limit);
}

bool FakeRegistry::WaitForNoSocket(absl::Duration limit) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, absl::ToChronoMilliseconds(limit),
                           [this] { return sockets_.empty(); });
}

}  // namespace vfio_agent
