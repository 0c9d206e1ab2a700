// Planning the way back: from vfio-pci to the drivers that devices came from. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "iommu/plan.h"

namespace vfio_agent {

// What was noted before the first write to a device.
struct Origin {
  PciAddress address;
  std::string driver;  // empty: it had none
  bool operator==(const Origin&) const = default;
};
using Origins = std::map<PciAddress, Origin>;

// Who has a group's node open: sentences such as "pid 4711 (qemu-system-x86)".
using Holders = std::map<int, std::vector<std::string>>;

struct GroupRelease {
  int group = 0;
  std::vector<PciAddress> members;  // those that are moved
  std::vector<Action> actions;
  std::vector<Refusal> refusals;
  bool operator==(const GroupRelease&) const = default;
};

// Plans to give back every group that has a member in `wanted`, whole: each endpoint on a vfio
// driver goes back to its origin's driver, or, where nothing is known of it, to the driver that
// the kernel finds. A group with a holder is refused (`held`).
std::vector<GroupRelease> PlanRelease(const NodeFacts& facts, const Origins& origins,
                                      const Holders& holders,
                                      const std::vector<PciAddress>& wanted);

// Plans to put just `moved` back where they came from, after a bind that failed half-way. Members
// of their groups that were on a vfio driver before are not touched.
std::vector<Action> PlanUndo(const NodeFacts& facts, const Origins& origins,
                             const std::vector<PciAddress>& moved);

}  // namespace vfio_agent
