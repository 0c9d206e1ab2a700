#include "test/kubelet/fake_admission.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "sysfs/status.h"

namespace vfio_agent {

absl::Status FakeAdmission::CheckHealthy(const std::string& resource,
                                         const std::vector<std::string>& ids) const {
  const FakeResources resources = kubelet_.Resources();
  const auto found = resources.find(resource);
  if (found == resources.end()) {
    return absl::UnknownError(absl::StrFormat("cannot allocate unregistered device %s", resource));
  }
  if (found->second.Healthy() == 0) {
    return absl::UnknownError(absl::StrFormat(
        "no healthy devices present; cannot allocate unhealthy devices %s", resource));
  }
  for (const std::string& id : ids) {
    const auto device = found->second.devices.find(id);
    if (device != found->second.devices.end() && device->second.healthy) continue;
    return absl::UnknownError(absl::StrFormat(
        "previously allocated devices are no longer healthy; cannot allocate unhealthy devices %s",
        resource));
  }
  return absl::OkStatus();
}

// `count` free ids: those that the plugin prefers, filled up in no order of ours.
absl::StatusOr<std::vector<std::string>> FakeAdmission::Choose(const std::string& resource,
                                                               size_t count) {
  const FakeResources resources = kubelet_.Resources();
  const std::set<std::string> taken = Allocated(resource);
  std::vector<std::string> free;
  for (const auto& [id, device] : resources.at(resource).devices) {
    if (device.healthy && !taken.contains(id)) free.push_back(id);
  }
  if (free.size() < count) {
    return absl::UnknownError(absl::StrFormat(
        "requested number of devices unavailable for %s. Requested: %d, Available: %d", resource,
        count, free.size()));
  }
  std::ranges::shuffle(free, random_);
  if (count < free.size()) {
    ASSIGN_OR_RETURN(const std::vector<std::string> preferred,
                     kubelet_.Preferred(resource, free, {}, static_cast<int>(count)));
    const auto end = std::ranges::stable_partition(
        free, [&](const std::string& id) { return std::ranges::count(preferred, id) > 0; });
    // The kubelet takes from the preferred ones in random order, too.
    std::shuffle(free.begin(), end.begin(), random_);
  }
  free.resize(count);
  return free;
}

absl::StatusOr<FakeAssignment> FakeAdmission::Admit(const Container& container,
                                                    const std::string& resource, size_t count) {
  FakeAssignment& assigned = assigned_[container][resource];
  RETURN_IF_ERROR(CheckHealthy(resource, assigned.ids));
  if (assigned.ids.size() == count) return assigned;
  if (!assigned.ids.empty()) {
    return absl::UnknownError(absl::StrFormat("%s changed request for %s from %d to %d", container,
                                              resource, assigned.ids.size(), count));
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> ids, Choose(resource, count));
  ++allocate_calls_;
  ASSIGN_OR_RETURN(assigned.answer, kubelet_.Allocate(resource, ids));
  assigned.ids = ids;
  return assigned;
}

absl::StatusOr<FakeAssignment> FakeAdmission::StartContainer(const Container& container,
                                                             const std::string& resource) {
  const FakeAssignment& assigned = assigned_[container][resource];
  if (assigned.ids.empty()) {
    return absl::UnknownError(absl::StrFormat("no devices of %s in the cache", resource));
  }
  RETURN_IF_ERROR(kubelet_.PreStart(resource, assigned.ids));
  return assigned;
}

void FakeAdmission::Remove(const Container& container) { assigned_.erase(container); }

std::set<std::string> FakeAdmission::Allocated(const std::string& resource) const {
  std::set<std::string> ids;
  for (const auto& container : assigned_) {
    const auto found = container.second.find(resource);
    if (found != container.second.end())
      ids.insert(found->second.ids.begin(), found->second.ids.end());
  }
  return ids;
}

}  // namespace vfio_agent
