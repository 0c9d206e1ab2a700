// The PCIe layout of a guest in which the given devices are as near to each other as on the host.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/topology/topology.h"

namespace vfio_agent {

// One PCI controller of the guest. `index` is also the number of the bus below it, as libvirt
// counts; index 0 is the machine's own root.
struct GuestController {
  enum class Model { kExpander, kRootPort, kUpstream, kDownstream };
  int index = 0;
  Model model = Model::kRootPort;
  int bus = 0;  // where it is plugged in
  int slot = 0;
  int function = 0;
  std::optional<int> cell;  // expanders: the guest's NUMA cell
  int bus_number = 0;       // expanders: what the guest's firmware calls their bus
  std::string why;          // what it stands for on the host
  bool operator==(const GuestController&) const = default;
};

struct GuestFunction {
  PciAddress host;
  int bus = 0;  // slot 0 always: one card for each port
  int function = 0;
  bool multifunction = false;
  bool operator==(const GuestFunction&) const = default;
};

struct GuestCell {
  int cell = 0;
  int host_node = 0;
  std::string cpus;  // of the host node; empty where they are not told
  bool operator==(const GuestCell&) const = default;
};

struct GuestLayout {
  std::vector<GuestCell> cells;
  std::vector<GuestController> controllers;  // a port comes after what it is plugged into
  std::vector<GuestFunction> functions;
  uint64_t bar_bytes = 0;  // memory that the devices' regions map
  bool operator==(const GuestLayout&) const = default;
};

// One expander bus for each NUMA node with a device, one root port for each card, and a switch
// where the host has one with several of the cards below it. No pair gets farther than it is on the
// host. ResourceExhausted where the guest's buses or slots do not suffice.
absl::StatusOr<GuestLayout> PlanGuest(const NodeFacts& facts, const std::vector<NumaNode>& numa,
                                      std::vector<PciAddress> devices);

// What a guest gets of `topology`: what the configuration selects, or with `all` every device of
// it; and the other functions of their slots that move with them.
std::vector<PciAddress> GuestDevices(const Topology& topology, const Plan& plan, bool all);

// Complete documents with comments. `layout` is of `devices`.
std::string LibvirtText(const Topology& topology, const std::vector<PciAddress>& devices,
                        const GuestLayout& layout);
std::string KubevirtLayoutText(const Topology& topology, const Plan& plan, const NodeFacts& facts,
                               const std::vector<PciAddress>& devices);

// What both say of the devices, one sentence each: refused ones, pairs that are torn apart, boards.
std::vector<std::string> GuestNotes(const Topology& topology,
                                    const std::vector<PciAddress>& devices);

}  // namespace vfio_agent
