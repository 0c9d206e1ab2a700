// Distance: how far two PCI functions are from each other, in the grades of NCCL and of
// `nvidia-smi topo`. Pure.
#pragma once

#include <string_view>
#include <vector>

#include "sysfs/device/numa.h"
#include "sysfs/node_facts.h"

namespace vfio_agent {

// From near to far, so that < means nearer.
enum class Distance {
  kSelf,
  kPix,      // at most one PCIe switch or bridge between them
  kPxb,      // several, and no host bridge
  kPhb,      // the host bridge that both are below
  kNode,     // two host bridges of one NUMA node
  kSys,      // the interconnect between NUMA nodes
  kUnknown,  // not told: no place in the tree, or two host bridges and no NUMA node
};

// "X", "PIX" … "SYS", "?".
std::string_view Name(Distance distance);

// One bridge or switch on the way from the host bridge to a device. A switch is two ports in the
// tree and one thing to pass: it is entered by its upstream port and left by a downstream one.
struct Hop {
  PciAddress entry;
  PciAddress exit;  // equal to `entry` for what is no switch
  bool operator==(const Hop&) const = default;
};
std::vector<Hop> HopsTo(const NodeFacts& facts, const PciDevice& device);

// Pure arithmetic of two such ways, for functions below one host bridge.
Distance DistanceOf(const std::vector<Hop>& a, const std::vector<Hop>& b);

// `numa`: the node's, empty where they are not known. A node with a single one has no SYS.
Distance DistanceBetween(const NodeFacts& facts, const std::vector<NumaNode>& numa,
                         const PciDevice& a, const PciDevice& b);

}  // namespace vfio_agent
