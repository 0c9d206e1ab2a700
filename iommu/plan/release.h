// Planning the way back: from vfio-pci to the drivers that devices came from. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "iommu/plan/plan.h"

namespace vfio_agent {

struct GroupRelease {
  int group = 0;
  std::vector<PciAddress> members;  // those that are moved
  std::vector<Action> actions;
  std::vector<Refusal> refusals;
  std::vector<int> vf_groups;  // of VFs that go with their physical function
  std::string mdev;            // the uuid, where the group is that of a mediated device
  bool operator==(const GroupRelease&) const = default;
};

// `wanted`, and what goes with it: all VFs that this agent has made of a physical function in it,
// and the physical function of which it has all of those.
std::vector<PciAddress> WithVfs(const NodeFacts& facts, const Records& records,
                                std::vector<PciAddress> wanted);

// Plans to give back every group that has a member in `wanted`, whole: each endpoint on a vfio
// driver goes back to the driver of its record, or, where none of this boot claims it, to the
// driver that the kernel finds; its driver_override and d3cold_allowed become what they were. A
// physical function whose VFs this agent has made loses them. A
// group that somebody uses is refused (`held`), as is one with a write that does not return. Needs
// custody.inquiry.
std::vector<GroupRelease> PlanRelease(const NodeFacts& facts, const Custody& custody,
                                      const std::vector<PciAddress>& wanted);

// Plans to put just `moved` back where they came from, after a bind that failed half-way. Members
// of their groups that were on a vfio driver before are not touched.
std::vector<Action> PlanUndo(const NodeFacts& facts, const Records& records,
                             const std::vector<PciAddress>& moved);

// Plans to put back what an agent that was killed had begun and the plan does not want: devices
// with an unfinished record whose group is neither to be bound nor bound, and a physical function
// whose VFs somebody else was first to make. What is in use is left out. Needs custody.inquiry
// where there is such a device.
std::vector<GroupRelease> PlanRecovery(const NodeFacts& facts, const Custody& custody,
                                       const Plan& plan);

// Records whose plan the kernel has carried out although it was cut off before it said so: the
// plan shows their groups as bound.
std::vector<Record> FinishedRecords(const Records& records, const Plan& plan);

}  // namespace vfio_agent
