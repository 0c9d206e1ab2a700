#include "deviceplugin/allocate.h"

#include <set>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "iommu/naming.h"

namespace vfio_agent {
namespace {

// Where the legacy container lives. KubeVirt prepares none of the other nodes where it is absent.
constexpr char kContainerNode[] = "/dev/vfio/vfio";

void AddNode(const std::string& path, v1beta1::ContainerAllocateResponse& response) {
  v1beta1::DeviceSpec& node = *response.add_devices();
  node.set_host_path(path);
  node.set_container_path(path);
  node.set_permissions("mrw");
}

absl::StatusOr<size_t> FindHealthy(const IndexedOffer& offer, const std::string& id) {
  const std::optional<size_t> found = offer.Find(id);
  if (!found) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: '%s' is not offered by this node", offer.offer().resource, id));
  }
  const OfferedUnit& unit = offer.unit(*found);
  if (!unit.healthy) {
    return absl::FailedPreconditionError(
        absl::StrFormat("%s: %s is not healthy: %s", offer.offer().resource, id,
                        unit.reason.empty() ? "no reason known" : unit.reason));
  }
  return *found;
}

}  // namespace

absl::StatusOr<std::vector<const OfferedUnit*>> FindUnits(const IndexedOffer& offer,
                                                          const std::vector<std::string>& ids) {
  if (ids.empty()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: the request names no device", offer.offer().resource));
  }
  std::set<size_t> positions;
  for (const std::string& id : ids) {
    const absl::StatusOr<size_t> found = FindHealthy(offer, id);
    if (!found.ok()) return found.status();
    if (!positions.insert(*found).second) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s: the request names %s twice", offer.offer().resource, id));
    }
  }
  std::vector<const OfferedUnit*> units;
  units.reserve(positions.size());
  for (const size_t position : positions) units.push_back(&offer.unit(position));
  return units;
}

v1beta1::ContainerAllocateResponse MakeAllocation(std::string_view resource,
                                                  const std::vector<const OfferedUnit*>& units) {
  v1beta1::ContainerAllocateResponse response;
  std::vector<std::string> addresses, groups, cdevs;
  std::set<std::string_view> seen;
  for (const OfferedUnit* unit : units) {
    addresses.insert(addresses.end(), unit->addresses.begin(), unit->addresses.end());
    for (const std::string& node : unit->nodes) {
      if (!seen.insert(node).second) continue;
      (node.starts_with("/dev/vfio/devices/") ? cdevs : groups).push_back(node);
    }
  }
  (*response.mutable_envs())[ResourceVariable(resource)] = absl::StrJoin(addresses, ",");
  AddNode(kContainerNode, response);
  for (const std::string& node : groups) AddNode(node, response);
  for (const std::string& node : cdevs) AddNode(node, response);
  return response;
}

}  // namespace vfio_agent
