#include "deviceplugin/offer.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "absl/strings/str_format.h"

namespace vfio_agent {
namespace {

using Endpoints = std::unordered_map<int, std::vector<const PciDevice*>>;
using UnitsById = std::unordered_map<std::string_view, const OfferedUnit*>;

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

// A cdev is named only where the device node is there as well: a container cannot be started with
// a node that is missing, and udev may have been told to make none.
void AddCdev(const PciDevice& device, const NodeFacts& facts, OfferedUnit& unit) {
  if (!device.vfio_cdev) return;
  const std::string name = "devices/" + *device.vfio_cdev;
  if (facts.vfio_nodes.contains(name)) unit.nodes.push_back("/dev/vfio/" + name);
}

OfferedUnit MakeUnit(const Unit& unit, const NodeFacts& facts, const Endpoints& endpoints) {
  OfferedUnit offered{.id = unit.id,
                      .group = *unit.group,
                      .numa_node = unit.numa_node,
                      .healthy = unit.state == UnitState::kReady,
                      .reason = unit.reason};
  for (const PciAddress& address : unit.addresses) offered.addresses.push_back(address.ToString());
  if (const PciDevice* primary = FindDevice(facts, unit.primary)) offered.path = PathOf(*primary);
  offered.nodes.push_back(absl::StrFormat("/dev/vfio/%d", *unit.group));
  const auto members = endpoints.find(*unit.group);
  if (members == endpoints.end()) return offered;
  for (const PciDevice* member : members->second) {
    offered.members.push_back(member->address.ToString());
    AddCdev(*member, facts, offered);
  }
  return offered;
}

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

OfferedUnit Withdrawn(OfferedUnit unit, std::string reason) {
  unit.healthy = false;
  unit.reason = std::move(reason);
  return unit;
}

std::string WhyMissing(const OfferedUnit& unit, const NodeFacts& facts) {
  const auto address = PciAddress::Parse(unit.id);
  if (address.ok() && FindDevice(facts, *address) == nullptr) return "the device is gone";
  return "the device is no longer selected for this resource";
}

// For lower-case addresses, shorter-first and then alphabetical is the order of PciAddress.
void SortUnits(std::vector<OfferedUnit>& units) {
  std::ranges::sort(units, [](const OfferedUnit& a, const OfferedUnit& b) {
    return std::forward_as_tuple(a.numa_node, a.id.size(), a.id) <
           std::forward_as_tuple(b.numa_node, b.id.size(), b.id);
  });
}

// Appends what `before` offered and `offer` lacks.
void KeepOffered(const Offer& before, const NodeFacts& facts, Offer& offer) {
  std::unordered_set<std::string> present;
  for (const OfferedUnit& unit : offer.units) present.insert(unit.id);
  for (const OfferedUnit& unit : before.units) {
    if (present.contains(unit.id)) continue;
    offer.units.push_back(Withdrawn(unit, WhyMissing(unit, facts)));
  }
}

Offer MakeOffer(const Resource& resource, const NodeFacts& facts, const Endpoints& endpoints,
                const Offer& before) {
  UnitsById offered;
  for (const OfferedUnit& unit : before.units) offered.emplace(unit.id, &unit);
  Offer offer{.resource = resource.name, .numa = resource.numa};
  for (const Unit& unit : resource.units) {
    const auto old = offered.find(unit.id);
    if (IsListed(unit)) {
      offer.units.push_back(MakeUnit(unit, facts, endpoints));
    } else if (old != offered.end()) {
      offer.units.push_back(Withdrawn(*old->second, unit.reason));
    }
  }
  KeepOffered(before, facts, offer);
  SortUnits(offer.units);
  return offer;
}

}  // namespace

std::vector<Offer> MakeOffers(const Plan& plan, const NodeFacts& facts,
                              const std::vector<Offer>& before) {
  const Endpoints endpoints = EndpointsByGroup(facts);
  std::vector<Offer> offers;
  for (const Resource& resource : plan.resources) {
    const auto old = std::ranges::find(before, resource.name, &Offer::resource);
    offers.push_back(MakeOffer(resource, facts, endpoints, old == before.end() ? Offer{} : *old));
  }
  for (const Offer& old : before) {
    if (std::ranges::find(offers, old.resource, &Offer::resource) != offers.end()) continue;
    Offer kept{.resource = old.resource, .numa = old.numa};
    KeepOffered(old, facts, kept);
    offers.push_back(std::move(kept));
  }
  return offers;
}

}  // namespace vfio_agent
