#include "deviceplugin/offer/allocate.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "iommu/mdev/mdev.h"
#include "iommu/policy/naming.h"

namespace vfio_agent {
namespace {

// The legacy container, groups, cdevs, /dev/iommu, /dev/egmN: an order for people.
int RankOf(std::string_view node) {
  if (node == "/dev/vfio/vfio") return 0;
  if (node == "/dev/iommu") return 3;
  if (node.starts_with("/dev/egm")) return 4;
  return node.starts_with("/dev/vfio/devices/") ? 2 : 1;
}

void AddNode(const std::string& path, v1beta1::ContainerAllocateResponse& response) {
  v1beta1::DeviceSpec& node = *response.add_devices();
  node.set_host_path(path);
  node.set_container_path(path);
  node.set_permissions("mrw");
}

absl::StatusOr<size_t> FindFit(const IndexedOffer& offer, const std::string& id, const Fit& fit) {
  const std::optional<size_t> found = offer.Find(id);
  if (!found) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: '%s' is not offered by this node", offer.offer().resource, id));
  }
  const OfferedUnit& unit = offer.unit(*found);
  if (!fit(unit)) {
    return absl::FailedPreconditionError(
        absl::StrFormat("%s: %s is not healthy: %s", offer.offer().resource, id,
                        unit.reason.empty() ? "no reason known" : unit.reason));
  }
  return *found;
}

// One for each resource: of two answers for one container that give a variable two values, the
// kubelet keeps the one.
std::string PairsVariable(std::string_view resource) {
  constexpr std::string_view kPrefix = "PCI_RESOURCE_";
  return "VFIO_AGENT_PAIRS_" + ResourceVariable(resource).substr(kPrefix.size());
}

}  // namespace

absl::StatusOr<std::vector<const OfferedUnit*>> FindUnits(const IndexedOffer& offer,
                                                          const std::vector<std::string>& ids,
                                                          const Fit& fit) {
  if (ids.empty()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: the request names no device", offer.offer().resource));
  }
  std::set<size_t> positions;
  for (const std::string& id : ids) {
    const absl::StatusOr<size_t> found = FindFit(offer, id, fit);
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

bool IsHealthy(const OfferedUnit& unit) { return unit.healthy; }

bool HaveOneAnswer(const OfferedUnit& one, const OfferedUnit& other) {
  const auto named = [](const OfferedUnit& unit) {
    return std::tie(unit.addresses, unit.nodes, unit.pairs, unit.mdev_type, unit.vgpu_type);
  };
  return named(one) == named(other) && GroupsOf(one) == GroupsOf(other);
}

v1beta1::ContainerAllocateResponse MakeAllocation(const Offer& offer,
                                                  const std::vector<const OfferedUnit*>& units) {
  v1beta1::ContainerAllocateResponse response;
  std::vector<std::string> addresses, nodes, pairs;
  std::set<std::string_view> seen;
  for (const OfferedUnit* unit : units) {
    addresses.insert(addresses.end(), unit->addresses.begin(), unit->addresses.end());
    pairs.insert(pairs.end(), unit->pairs.begin(), unit->pairs.end());
    for (const std::string& node : unit->nodes) {
      if (seen.insert(node).second) nodes.push_back(node);
    }
    if (offer.cdi_names) {
      response.add_cdi_devices()->set_name(absl::StrFormat("%s=%s", offer.resource, unit->id));
    }
  }
  // A variable of the other kind beside it would make two devices of each.
  const bool mdev = !units.empty() && !units.front()->mdev_type.empty();
  const std::string variable =
      mdev ? MdevVariable(offer.resource) : ResourceVariable(offer.resource);
  (*response.mutable_envs())[variable] = absl::StrJoin(addresses, ",");
  if (!pairs.empty()) {
    (*response.mutable_envs())[PairsVariable(offer.resource)] = absl::StrJoin(pairs, ",");
  }
  std::ranges::stable_sort(nodes, {}, RankOf);
  for (const std::string& node : nodes) AddNode(node, response);
  return response;
}

}  // namespace vfio_agent
