#include "iommu/distance/distance.h"

#include <algorithm>
#include <array>

namespace vfio_agent {
namespace {

constexpr std::array<std::string_view, 7> kNames = {"X", "PIX", "PXB", "PHB", "NODE", "SYS", "?"};

// Without the config space beyond 64 bytes the port's type is not known. Below a root port PCIe
// allows upstream and downstream ports by turns only, so the place in the path tells as well.
bool IsDownstream(const NodeFacts& facts, const std::vector<PciAddress>& path, size_t i) {
  const PciDevice* const port = FindDevice(facts, path[i]);
  if (port == nullptr || port->config.pcie_type.unknown()) return i >= 2 && i % 2 == 0;
  return port->config.pcie_type.is(PcieType::kDownstream);
}

Distance AcrossHostBridges(const std::vector<NumaNode>& numa, const PciDevice& a,
                           const PciDevice& b) {
  if (a.numa_node && b.numa_node) {
    return *a.numa_node == *b.numa_node ? Distance::kNode : Distance::kSys;
  }
  // The kernel says -1 where the firmware has no table, as it may with a single node.
  const auto with_cpus =
      std::ranges::count_if(numa, [](const NumaNode& node) { return !node.cpus.empty(); });
  return with_cpus == 1 ? Distance::kNode : Distance::kUnknown;
}

}  // namespace

std::string_view Name(Distance distance) { return kNames[static_cast<size_t>(distance)]; }

std::vector<Hop> HopsTo(const NodeFacts& facts, const PciDevice& device) {
  std::vector<Hop> hops;
  for (size_t i = 0; i < device.path.size(); ++i) {
    if (!hops.empty() && IsDownstream(facts, device.path, i)) {
      hops.back().exit = device.path[i];
    } else {
      hops.push_back({.entry = device.path[i], .exit = device.path[i]});
    }
  }
  return hops;
}

Distance DistanceOf(const std::vector<Hop>& a, const std::vector<Hop>& b) {
  size_t same = 0;
  while (same < a.size() && same < b.size() && a[same] == b[same]) ++same;
  const bool one_switch = same < a.size() && same < b.size() && a[same].entry == b[same].entry;
  if (same == 0 && !one_switch) return Distance::kPhb;
  // The switch that both ways pass is one, whatever its ports.
  const size_t between = a.size() - same + b.size() - same - (one_switch ? 1 : 0);
  return between <= 1 ? Distance::kPix : Distance::kPxb;
}

Distance DistanceBetween(const NodeFacts& facts, const std::vector<NumaNode>& numa,
                         const PciDevice& a, const PciDevice& b) {
  if (a.address == b.address) return Distance::kSelf;
  if (a.root.empty() || b.root.empty()) return Distance::kUnknown;
  if (a.root != b.root) return AcrossHostBridges(numa, a, b);
  const Distance distance = DistanceOf(HopsTo(facts, a), HopsTo(facts, b));
  // One host bridge over two nodes is only how a hypervisor or an odd firmware shows it.
  if (distance == Distance::kPhb && a.numa_node && b.numa_node && a.numa_node != b.numa_node) {
    return Distance::kSys;
  }
  return distance;
}

}  // namespace vfio_agent
