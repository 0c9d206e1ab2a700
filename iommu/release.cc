#include "iommu/release.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "iommu/planning.h"

namespace vfio_agent {
namespace {

// With the override on the old driver the kernel takes just that one back, even where two would
// fit (nouveau and nvidia); afterwards the override goes.
void AddReturn(const NodeFacts& facts, const Origins& origins, const PciDevice& device,
               std::vector<Action>& actions) {
  const auto origin = origins.find(device.address);
  const bool known = origin != origins.end();
  const std::string driver = known ? origin->second.driver : "";
  const bool to_driver = !driver.empty() && facts.drivers.contains(driver);
  const bool bound = device.driver && IsVfioDriver(*device.driver);
  if (device.driver && !bound) {
    actions.push_back(SetOverride{device.address, ""});
    return;
  }
  actions.push_back(SetOverride{device.address, to_driver ? driver : ""});
  if (bound) actions.push_back(Unbind{device.address, *device.driver});
  // What had no driver gets none back.
  if (!known || !driver.empty()) {
    actions.push_back(Probe{device.address, to_driver ? driver : ""});
  }
  if (to_driver) actions.push_back(SetOverride{device.address, ""});
}

// Ours to move: on a vfio driver, or left without one or with an override half-way through a bind.
bool ToBeMoved(const Origins& origins, const PciDevice& device) {
  if (device.IsBridge()) return false;
  // Noted, but still with the host: our override may be all that was written.
  if (device.driver) return IsVfioDriver(*device.driver) || origins.contains(device.address);
  const auto origin = origins.find(device.address);
  return origin != origins.end() && !origin->second.driver.empty();
}

}  // namespace

std::vector<GroupRelease> PlanRelease(const NodeFacts& facts, const Origins& origins,
                                      const Holders& holders,
                                      const std::vector<PciAddress>& wanted) {
  std::map<int, GroupRelease> releases;
  for (const PciAddress& address : wanted) {
    const PciDevice* const device = FindDevice(facts, address);
    if (device != nullptr && device->group) releases[*device->group].group = *device->group;
  }
  for (const PciDevice& device : facts.devices) {
    if (!device.group || !releases.contains(*device.group)) continue;
    if (!ToBeMoved(origins, device)) continue;
    GroupRelease& release = releases[*device.group];
    release.members.push_back(device.address);
    AddReturn(facts, origins, device, release.actions);
  }
  std::vector<GroupRelease> list;
  for (auto& [group, release] : releases) {
    if (release.members.empty()) continue;
    if (const auto held = holders.find(group); held != holders.end() && !held->second.empty()) {
      release.refusals.push_back({.code = Code::kHeld,
                                  .group = group,
                                  .address = release.members.front(),
                                  .text = absl::StrFormat("group %d is in use by %s", group,
                                                          absl::StrJoin(held->second, ", ")),
                                  .remedy = std::string(DefaultRemedy(Code::kHeld))});
      release.actions.clear();
    }
    list.push_back(std::move(release));
  }
  return list;
}

std::vector<Action> PlanUndo(const NodeFacts& facts, const Origins& origins,
                             const std::vector<PciAddress>& moved) {
  std::vector<Action> actions;
  for (const PciAddress& address : moved) {
    const PciDevice* const device = FindDevice(facts, address);
    if (device == nullptr || !origins.contains(address)) continue;
    AddReturn(facts, origins, *device, actions);
  }
  return actions;
}

}  // namespace vfio_agent
