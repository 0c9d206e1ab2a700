// Custody: what the agent knows of devices besides the kernel's tree: what its journal claims,
// who uses what, and which writes do not return. A value, and one of MakePlan()'s inputs.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "iommu/tenancy/claims.h"
#include "iommu/tenancy/record.h"
#include "iommu/tenancy/tenancy.h"
#include "sysfs/use/use.h"

namespace vfio_agent {

// A write that has outlived its deadline and whose child is still in the kernel.
struct StuckWrite {
  PciAddress device;
  std::string command;  // the step as a shell command
  std::string where;    // the kernel function that it waits in; empty where it cannot be seen
  bool operator==(const StuckWrite&) const = default;
};

// What this agent, and other processes like it, are doing right now.
struct Underway {
  std::map<int, StuckWrite> stuck;  // by group
  std::set<int> at_work;            // groups with a child of this process at work, in time
  std::set<int> elsewhere;          // groups that another vfio-agent process is at work on
  bool operator==(const Underway&) const = default;
};

// What is looked at only for groups that are about to be written to.
struct Inquiry {
  UseFacts use;
  // driver_override as it reads: "(null)" for none. Unknown where the read does not return.
  std::map<PciAddress, Fact<std::string>> overrides;
  PodClaims claims;
  bool operator==(const Inquiry&) const = default;
};

struct Custody {
  Records records;
  Underway underway;
  // Devices of groups that this process has seen with a member on a vfio driver: no record tells of
  // those that it has adopted, and a pod may have them all the same.
  std::set<PciAddress> seen_bound;
  // FatalErrors() of what is with a vfio driver, as it was when this process first saw it there or
  // was told to forget: more than these make a unit unhealthy.
  std::map<PciAddress, uint64_t> fatal_before;
  // nullopt: nobody has looked; no unit is shown as held or withheld then.
  std::optional<Tenancy> tenancy;
  // What the units that Allocate gave stood for then: what is composed now may be other units.
  Parts given;
  // nullopt: nobody has looked yet. The plan then shows what there is to look at.
  std::optional<Inquiry> inquiry;
  bool operator==(const Custody&) const = default;
};

// Adds the endpoints of the groups that have one on a vfio driver now.
void NoteBound(const NodeFacts& facts, std::set<PciAddress>& seen_bound);

// Fatal PCIe errors that the kernel has counted of `endpoint`. It reads an endpoint's own status
// for errors that are not fatal; a fatal one is counted by the root port, and everything below that
// is reset (drivers/pci/pcie/aer.c, err.c).
uint64_t FatalErrors(const NodeFacts& facts, const PciDevice& endpoint);

// Keeps `before` to the endpoints that are with a vfio driver now: new ones begin with what is
// counted now, as do those whose count has begun anew.
void NoteFatal(const NodeFacts& facts, std::map<PciAddress, uint64_t>& before);

// The kernel's spelling of "no override".
inline constexpr char kNoOverride[] = "(null)";

// What somebody else has put into `device`'s driver_override: empty for none, for a vfio driver,
// and for what the journal claims. Needs the inquiry.
std::string ForeignOverride(const Custody& custody, const PciAddress& device);

// True for a group that a pod can have: one of its members is with a vfio driver, or this agent had
// it ready in this boot, or this process has seen it so.
bool CanBeHeld(const Custody& custody, const NodeFacts& facts, int group);

// Who uses `group`, so that nothing of it may be written to: pods by name, processes by number;
// empty for nobody. Pods count where one can have it: what the kubelet still says of other groups
// dates from before a reboot. Needs the inquiry.
std::string WhyHeld(const Custody& custody, const NodeFacts& facts, int group);

}  // namespace vfio_agent
