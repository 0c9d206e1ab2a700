// Hardware: PCI topologies for the isolation rules, one line for each function.
#pragma once

#include <string>
#include <vector>

#include "iommu/isolation/isolation.h"
#include "sysfs/node_facts.h"

namespace vfio_agent {

// One function as the rules see it. Its ids are of no vendor that the kernel vouches for.
struct Part {
  std::string address;
  Fact<PcieType> type = Fact<PcieType>(PcieType::kEndpoint);  // absent: conventional PCI
  Fact<Acs> acs;                                              // absent: no capability
  std::string parent;                                         // above it in the list
  int group = -1;                                             // the kernel's
  bool multifunction = false;
};

inline Fact<PcieType> RootPort() { return Fact<PcieType>(PcieType::kRootPort); }
inline Fact<PcieType> Upstream() { return Fact<PcieType>(PcieType::kUpstream); }
inline Fact<PcieType> Downstream() { return Fact<PcieType>(PcieType::kDownstream); }
inline Fact<PcieType> PcieToPci() { return Fact<PcieType>(PcieType::kPcieToPci); }
inline Fact<PcieType> Conventional() { return Fact<PcieType>::Absent(); }
// Every service that the kernel asks for, on; and the same switched off.
inline Fact<Acs> Isolating() { return Fact<Acs>(Acs{.capability = 0x5f, .control = 0x1d}); }
inline Fact<Acs> SwitchedOff() { return Fact<Acs>(Acs{.capability = 0x5f, .control = 0}); }

PciDevice MakeFunction(const Part& part);
NodeFacts MakeHardware(const std::vector<Part>& parts);

// The sets, one line each: "0000:01:00.0 0000:01:00.1". Those that the rule computes, and those
// that the kernel has.
std::string ComputedSets(const Grouping& grouping);
std::string KernelSets(const NodeFacts& facts);

}  // namespace vfio_agent
