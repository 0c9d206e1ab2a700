#include "deviceplugin/offer/offer.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "absl/strings/str_format.h"
#include "iommu/code.h"
#include "iommu/plan/condition.h"
#include "iommu/plan/planning.h"

namespace vfio_agent {
namespace {

using Endpoints = std::unordered_map<int, std::vector<const PciDevice*>>;

Endpoints EndpointsByGroup(const NodeFacts& facts) {
  Endpoints groups;
  for (const PciDevice& device : facts.devices) {
    if (device.group && !device.IsBridge()) groups[*device.group].push_back(&device);
  }
  return groups;
}

std::vector<std::string> PathOf(const PciDevice& device) {
  std::vector<std::string> path;
  path.reserve(device.path.size() + 1);
  if (!device.root.empty()) path.push_back(device.root);
  for (const PciAddress& bridge : device.path) path.push_back(bridge.ToString());
  return path;
}

// A node is named only where it is there: a container cannot be started with one that is missing,
// the kernel may be built without the one kind or the other, and udev may have been told to make
// none.
void AddNode(const std::string& name, const NodeFacts& facts, OfferedUnit& unit) {
  if (facts.vfio_nodes.contains(name)) unit.nodes.push_back("/dev/vfio/" + name);
}

// A unit that a pod has stays healthy: its health is what the pod's status shows.
bool IsHealthy(UnitState state) { return state == UnitState::kReady || state == UnitState::kHeld; }

// True for a unit that is the guests' already, whatever is wrong with it now. One that waits to
// be bound, or never may be, is no capacity that a scheduler could count on.
bool IsListed(const Unit& unit) {
  switch (unit.state) {
    case UnitState::kReady:
    case UnitState::kHeld:
    case UnitState::kWithheld:
    case UnitState::kUnhealthy:
      return unit.group.has_value();
    case UnitState::kToBind:
    case UnitState::kRefused:
      return false;
  }
  return false;
}

std::string WhyMissing(const OfferedUnit& unit, const NodeFacts& facts) {
  const auto address = PciAddress::Parse(unit.id);
  if (address.ok() && FindDevice(facts, *address) == nullptr) return "the device is gone";
  const bool mdev = !unit.mdev_type.empty();
  if (mdev && FindMdev(facts.mdev, unit.id) == nullptr) return "the mediated device is gone";
  if (!unit.vgpu_type.empty()) return "it is no vGPU of this type any more, or not selected";
  return "the device is no longer selected for this resource, by the configuration or the mode";
}

// For lower-case addresses, shorter-first and then alphabetical is the order of PciAddress.
void SortUnits(std::vector<OfferedUnit>& units) {
  std::ranges::sort(units, [](const OfferedUnit& a, const OfferedUnit& b) {
    return std::forward_as_tuple(a.numa_node, a.id.size(), a.id) <
           std::forward_as_tuple(b.numa_node, b.id.size(), b.id);
  });
}

// Where nothing of `unit` is known to be in use.
constexpr absl::Duration kDelistAfter = absl::Seconds(10);

class OfferMaker {
 public:
  OfferMaker(const NodeFacts& facts, const std::vector<Offer>& before, const OfferOptions& options,
             const Tenancy* tenancy, absl::Time now)
      : facts_(facts), options_(options), now_(now), endpoints_(EndpointsByGroup(facts)) {
    for (const Offer& offer : before) before_.emplace(offer.resource, &offer);
    known_ = tenancy != nullptr && tenancy->claims.known && tenancy->silent.empty();
    if (tenancy == nullptr) return;
    never_told_ = !tenancy->claims.known;
    why_unknown_ = tenancy->claims.why_unknown;
    for (const PodClaim& claim : tenancy->claims.list) claimed_.insert(claim.unit);
    for (const Grant& grant : tenancy->grants) claimed_.insert(grant.unit);
  }

  std::vector<Offer> Make(const Plan& plan) {
    std::vector<Offer> offers;
    for (const Resource& resource : plan.resources) {
      if (resource.serve != options_.serve) continue;
      offers.push_back({.resource = resource.name,
                        .numa = resource.numa,
                        .cdi_names = options_.cdi_names,
                        .partitions = resource.partitions,
                        .only_partitions = resource.only_partitions,
                        .partitions_fault = resource.partitions_fault,
                        .serve = resource.serve});
      planned_.emplace(resource.name, &resource);
      std::ranges::copy_if(
          plan.egm, std::back_inserter(offers.back().egm),
          [&resource](const EgmShare& share) { return share.resource == resource.name; });
    }
    for (const auto& [name, old] : before_) {
      if (planned_.contains(name)) continue;
      offers.push_back({.resource = old->resource, .numa = old->numa, .cdi_names = old->cdi_names});
    }
    // What stays comes first: it decides which ids are taken.
    for (Offer& offer : offers) AddWithdrawn(offer);
    for (Offer& offer : offers) AddPlanned(offer);
    for (Offer& offer : offers) SortUnits(offer.units);
    return offers;
  }

 private:
  // Who came the other way, from before `serve` was changed; empty for nobody. Whom we serve now
  // does not know of them.
  std::string HeldOtherwise(const Unit& unit) const {
    for (const PodClaim& pod : unit.pods) {
      if (IsResourceClaim(pod) == (options_.serve == Serve::kDra)) continue;
      return absl::StrFormat("%s: %s has it", CodeName(Code::kHeld), Spell(pod));
    }
    // Of its own pods the kubelet knows; a claim's units it would give beside them.
    const bool perhaps = options_.serve == Serve::kDra && never_told_;
    if (perhaps && std::ranges::none_of(unit.pods, IsResourceClaim)) {
      return absl::StrFormat("%s: a pod perhaps: %s", CodeName(Code::kHeld), why_unknown_);
    }
    return "";
  }

  OfferedUnit MakeUnit(const Unit& unit) const {
    OfferedUnit offered{.id = unit.id,
                        .group = *unit.group,
                        .numa_node = unit.numa_node,
                        .healthy = IsHealthy(unit.state),
                        .groups = unit.groups};
    if (!offered.healthy) offered.reason = unit.reason;
    const std::string otherwise = HeldOtherwise(unit);
    offered.kept = unit.kept && otherwise.empty();
    if (offered.healthy && !otherwise.empty()) {
      offered.healthy = false;
      offered.reason = otherwise;
    }
    for (const PodClaim& pod : unit.pods) {
      offered.holder += (offered.holder.empty() ? "" : ", ") + Spell(pod);
    }
    for (const PciAddress& address : unit.addresses) {
      offered.addresses.push_back(address.ToString());
    }
    if (const PciDevice* primary = FindDevice(facts_, unit.primary))
      offered.path = PathOf(*primary);
    offered.mdev_type = unit.mdev_type;
    offered.vgpu_type = unit.vgpu_type;
    offered.type_name = unit.type_name;
    if (!unit.mdev_type.empty()) offered.addresses.push_back(unit.id);
    for (const int group : GroupsOf(unit)) {
      const auto members = endpoints_.find(group);
      if (members == endpoints_.end()) continue;
      for (const PciDevice* member : members->second) {
        offered.members.push_back(member->address.ToString());
      }
    }
    for (const auto& [first, other] : unit.pairs) {
      offered.pairs.push_back(absl::StrFormat("%s=%s", first.ToString(), other.ToString()));
    }
    AddNodes(unit, offered);
    return offered;
  }

  void AddNodes(const Unit& unit, OfferedUnit& offered) const {
    AddNode("vfio", facts_, offered);
    for (const int group : GroupsOf(unit)) AddNode(GroupNodeName(facts_, group), facts_, offered);
    const size_t before = offered.nodes.size();
    for (const PciAddress& address : unit.addresses) {
      const PciDevice* const device = FindDevice(facts_, address);
      if (device != nullptr && device->vfio_cdev) {
        AddNode("devices/" + *device->vfio_cdev, facts_, offered);
      }
    }
    const MdevInstance* const mdev = FindMdev(facts_.mdev, unit.id);
    if (mdev != nullptr && mdev->cdev) AddNode("devices/" + *mdev->cdev, facts_, offered);
    const bool has_cdev = offered.nodes.size() > before;
    if (has_cdev && options_.iommufd && facts_.iommu_node) offered.nodes.push_back("/dev/iommu");
  }

  // The units of the old list that the plan does not offer under this resource.
  void AddWithdrawn(Offer& offer) {
    const auto old = before_.find(offer.resource);
    if (old == before_.end()) return;
    std::unordered_map<std::string_view, const Unit*> planned;
    if (const auto resource = planned_.find(offer.resource); resource != planned_.end()) {
      for (const Unit& unit : resource->second->units) planned.emplace(unit.id, &unit);
    }
    for (const OfferedUnit& unit : old->second->units) {
      const auto now = planned.find(unit.id);
      if (now != planned.end() && IsListed(*now->second)) continue;
      const std::string& why =
          now != planned.end() ? now->second->reason : WhyMissing(unit, facts_);
      OfferedUnit withdrawn = Withdrawn(unit, why);
      const bool claimed = !known_ || claimed_.contains(unit.id);
      if (!claimed && now_ - withdrawn.withdrawn >= kDelistAfter) continue;
      withdrawn.was_fit = unit.was_fit || unit.healthy || unit.kept;
      withdrawn.kept = claimed && now == planned.end() && withdrawn.was_fit;
      taken_.insert(unit.id);
      offer.units.push_back(std::move(withdrawn));
    }
  }

  void AddPlanned(Offer& offer) {
    const auto resource = planned_.find(offer.resource);
    if (resource == planned_.end()) return;
    for (const Unit& unit : resource->second->units) {
      if (IsListed(unit) && taken_.insert(unit.id).second) offer.units.push_back(MakeUnit(unit));
    }
  }

  OfferedUnit Withdrawn(OfferedUnit unit, std::string reason) const {
    unit.healthy = false;
    unit.reason = std::move(reason);
    // As long as a pod has it, the delay does not begin.
    const bool waiting = unit.withdrawn != absl::InfiniteFuture();
    if (!waiting || !known_ || claimed_.contains(unit.id)) unit.withdrawn = now_;
    return unit;
  }

  const NodeFacts& facts_;
  const OfferOptions& options_;
  const absl::Time now_;
  const Endpoints endpoints_;
  std::map<std::string_view, const Offer*> before_;
  std::map<std::string_view, const Resource*> planned_;
  bool known_ = false;       // which units pods have
  bool never_told_ = false;  // since the agent's start
  std::string why_unknown_;
  std::unordered_set<std::string> claimed_;  // those that they have
  std::unordered_set<std::string> taken_;    // ids that are in a list already
};

}  // namespace

std::vector<int> GroupsOf(const OfferedUnit& unit) {
  return unit.groups.empty() ? std::vector<int>{unit.group} : unit.groups;
}

std::vector<Offer> MakeOffers(const Plan& plan, const NodeFacts& facts,
                              const std::vector<Offer>& before, const OfferOptions& options,
                              const Tenancy* tenancy, absl::Time now) {
  return OfferMaker(facts, before, options, tenancy, now).Make(plan);
}

bool HasWithdrawn(const std::vector<Offer>& offers) {
  return std::ranges::any_of(offers, [](const Offer& offer) {
    return std::ranges::any_of(offer.units, [](const OfferedUnit& unit) {
      return unit.withdrawn != absl::InfiniteFuture();
    });
  });
}

}  // namespace vfio_agent
