// What the fake kubelet makes of lists and of streams that end, and what can be seen of it.
#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_format.h"
#include "test/kubelet/fake_kubelet.h"
#include "test/kubelet/fake_plugin.h"

namespace vfio_agent {

void FakeKubelet::TakeList(const PluginPtr& plugin, const v1beta1::ListAndWatchResponse& list) {
  std::map<std::string, FakeDevice> devices;
  for (const v1beta1::Device& device : list.devices()) {
    FakeDevice& entry = devices[device.id()];
    entry = {.healthy = device.health() == "Healthy"};
    for (const v1beta1::NUMANode& node : device.topology().nodes()) {
      entry.numa.push_back(node.id());
    }
  }
  std::string text = list.SerializeAsString();
  const std::unique_lock lock(mutex_);
  FakeResource& resource = resources_[plugin->resource];
  for (const auto& [id, device] : devices) {
    const auto before = resource.devices.find(id);
    const bool same = before != resource.devices.end() && before->second.healthy == device.healthy;
    if (!same) resource.pushed.push_back(id);
  }
  resource.devices = std::move(devices);
  resource.history.push_back(resource.Healthy());
  if (resource.Healthy() > 0) ++resource.healthy_lists;
  resource.newest = list;
  ++resource.messages;
  const bool first = !std::exchange(plugin->told, true);
  if (!first && plugin->last_list == text) ++resource.repeats;
  plugin->last_list = std::move(text);
  changed_.notify_all();
}

void FakeKubelet::StreamEnded(const PluginPtr& plugin, const std::string& error) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !hold_disconnects_ || stopping_; });
  if (stopping_) return;
  if (!error.empty()) resources_[plugin->resource].ended_with = error;
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
    resource.stopped_at = options_.clock();
    for (auto& entry : resource.devices) entry.second.healthy = false;
    resource.history.push_back(0);
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

void FakeKubelet::ForgetHistory() {
  const std::unique_lock lock(mutex_);
  for (auto& entry : resources_) entry.second.history.clear();
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

std::vector<FakeRegisterCall> FakeKubelet::RegisterCalls() const {
  const std::unique_lock lock(mutex_);
  return calls_;
}

// With mutex_ held. Forgets what has been without a plugin for longer than the grace.
void FakeKubelet::Forget(absl::Time now) {
  std::erase_if(remembered_,
                [this](const auto& entry) { return resources_.contains(entry.first); });
  std::erase_if(resources_, [&](const auto& entry) {
    const bool over = entry.second.stopped && now - entry.second.stopped_at > options_.grace;
    if (over) forgotten_.insert(entry.first);
    return over;
  });
  std::erase_if(remembered_, [&](const auto& entry) {
    const bool over = now - entry.second > options_.grace;
    if (over) forgotten_.insert(entry.first);
    return over;
  });
}

std::map<std::string, FakeCapacity> FakeKubelet::Capacity() {
  const std::unique_lock lock(mutex_);
  Forget(options_.clock());
  std::map<std::string, FakeCapacity> capacity;
  for (const std::string& name : forgotten_) capacity[name] = {};
  for (const auto& entry : remembered_) capacity[entry.first] = {};
  for (const auto& [name, resource] : resources_) {
    capacity[name] = {.capacity = resource.devices.size(), .allocatable = resource.Healthy()};
  }
  return capacity;
}

std::map<std::string, std::vector<std::string>> FakeKubelet::AllocatableIds() const {
  const std::unique_lock lock(mutex_);
  std::map<std::string, std::vector<std::string>> ids;
  for (const auto& [name, resource] : resources_) {
    for (const auto& [id, device] : resource.devices) {
      if (device.healthy) ids[name].push_back(id);
    }
  }
  return ids;
}

void FakeKubelet::DropSilently(const std::string& name) {
  const std::unique_lock lock(mutex_);
  FakeResource& resource = resources_.at(name);
  resource.stopped = true;
  resource.stopped_at = options_.clock();
  for (auto& entry : resource.devices) entry.second.healthy = false;
  resource.history.push_back(0);
  connected_[name].clear();
  changed_.notify_all();
}

bool FakeKubelet::PodStatusHealthy(const std::string& id) const {
  const std::unique_lock lock(mutex_);
  for (const auto& entry : resources_) {
    const auto found = entry.second.devices.find(id);
    if (found != entry.second.devices.end()) return found->second.healthy;
  }
  return true;
}

}  // namespace vfio_agent
