#include "iommu/bundle/egm.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace vfio_agent {
namespace {

struct Owner {
  const Resource* resource = nullptr;
  const Unit* unit = nullptr;
};

Owner OwnerOf(const PciAddress& gpu, const std::vector<Resource>& resources) {
  for (const Resource& resource : resources) {
    for (const Unit& unit : resource.units) {
      if (std::ranges::count(unit.addresses, gpu) > 0) return {&resource, &unit};
    }
  }
  return {};
}

// Empties what stands in `share` so far.
void GiveToNobody(std::string why, EgmShare& share) {
  share.resource.clear();
  share.units.clear();
  share.why = std::move(why);
}

// Where no set of the resource has all of the units, no container can ask for them.
bool CanBeAskedFor(const EgmShare& share, const Resource& resource) {
  if (share.units.size() < 2) return true;
  if (!resource.partitions_fault.empty()) return false;
  // Of bundles a container may have several.
  if (resource.partitions.empty() || resource.only_partitions) return true;
  return std::ranges::any_of(resource.partitions, [&share](const std::vector<std::string>& set) {
    return std::ranges::includes(set, share.units);
  });
}

// The kernel counts a GPU to its region only once the Grace driver has it, so until all are bound a
// region may have more than it says. GPUs of one model may be in several resources.
const Unit* StillToBind(const Resource& resource, const std::vector<Resource>& resources) {
  for (const Resource& other : resources) {
    if (other.vendor != resource.vendor || other.device != resource.device) continue;
    const auto found = std::ranges::find(other.units, UnitState::kToBind, &Unit::state);
    if (found != other.units.end()) return &*found;
  }
  return nullptr;
}

// Of a region whose GPUs are all units of `resource`; empty where a container can have it.
std::string WhyNobody(const EgmRegion& region, const EgmShare& share, const Resource& resource,
                      const std::vector<Resource>& resources) {
  if (resource.serve == Serve::kDra) return "resource claims get no such node";
  const Unit* const unbound = StillToBind(resource, resources);
  if (unbound != nullptr) {
    return absl::StrFormat("%s is still to be bound, and the kernel may list it then", unbound->id);
  }
  if (!CanBeAskedFor(share, resource)) {
    return "no set of resources[].partitions has all of its GPUs";
  }
  return region.has_node ? "" : "the node is not there";
}

EgmShare ShareOf(const EgmRegion& region, const std::vector<Resource>& resources) {
  EgmShare share{.node = "/dev/" + region.name, .gpus = region.gpus, .why = region.fault};
  if (!region.fault.empty()) return share;
  std::set<std::string> units;
  const Resource* resource = nullptr;
  for (const PciAddress& gpu : region.gpus) {
    const Owner owner = OwnerOf(gpu, resources);
    if (owner.unit == nullptr || owner.unit->state == UnitState::kRefused) {
      GiveToNobody(absl::StrFormat("%s is %s", gpu.ToString(),
                                   owner.unit == nullptr ? "given to no guest" : "refused"),
                   share);
      return share;
    }
    if (resource != nullptr && resource != owner.resource) {
      GiveToNobody(absl::StrFormat("%s is of %s and %s of %s", region.gpus.front().ToString(),
                                   resource->name, gpu.ToString(), owner.resource->name),
                   share);
      return share;
    }
    resource = owner.resource;
    units.insert(owner.unit->id);
  }
  share.resource = resource->name;
  share.units.assign(units.begin(), units.end());
  std::string why = WhyNobody(region, share, *resource, resources);
  if (!why.empty()) GiveToNobody(std::move(why), share);
  return share;
}

std::string Join(const std::vector<PciAddress>& addresses) {
  return absl::StrJoin(addresses, " ", [](std::string* out, const PciAddress& address) {
    out->append(address.ToString());
  });
}

}  // namespace

std::vector<EgmShare> ShareEgm(const std::vector<EgmRegion>& regions,
                               const std::vector<Resource>& resources) {
  std::vector<EgmShare> shares;
  for (const EgmRegion& region : regions) shares.push_back(ShareOf(region, resources));
  return shares;
}

std::string Spell(const EgmShare& share) {
  const std::string what = absl::StrFormat("%s (Extended GPU Memory%s%s)", share.node,
                                           share.gpus.empty() ? "" : " of ", Join(share.gpus));
  if (share.resource.empty()) return absl::StrFormat("%s goes to nobody: %s", what, share.why);
  return absl::StrFormat("%s goes to a pod that has %s: %d of %s", what,
                         share.gpus.size() == 1 ? "it" : "all of them", share.units.size(),
                         share.resource);
}

}  // namespace vfio_agent
