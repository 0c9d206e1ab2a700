// The Kernel's config spaces: what a function's place in the tree means for its bytes.
#include <algorithm>
#include <string>

#include "test/sim/kernel.h"

namespace vfio_agent::sim {
namespace {

// "0000:3b:00.1" -> 0x3b; the domain may have more digits.
int BusOf(const std::string& address) {
  const size_t last = address.rfind(':');
  const size_t first = address.rfind(':', last - 1);
  return std::stoi(address.substr(first + 1, last - first - 1), nullptr, 16);
}

// Host bridges, LPC and SMBus controllers: conventional PCI even on new machines.
bool IsChipset(const MachineDevice& facts) {
  const uint32_t class16 = facts.class_code >> 8;
  return class16 == 0x0600 || class16 == 0x0601 || class16 == 0x0c05;
}

}  // namespace

// From root to leaf the ports alternate: root port, then for each switch upstream, downstream. A
// bridge in an upstream port's place that leads to endpoints only is one to conventional PCI.
PortType Kernel::PortOf(const Device& device) const {
  const MachineDevice& facts = device.facts;
  const auto parent = devices_.find(facts.parent);
  if (parent == devices_.end()) {
    if (facts.is_bridge) return PortType::kRootPort;
    if (IsChipset(facts)) return PortType::kConventional;
    return BusOf(facts.address) == 0 ? PortType::kRootComplexEndpoint : PortType::kEndpoint;
  }
  const PortType above = PortOf(*parent->second);
  if (above == PortType::kPcieToPci || above == PortType::kConventional) {
    return PortType::kConventional;
  }
  if (!facts.is_bridge) return PortType::kEndpoint;
  if (facts.pci_bridge) return PortType::kPcieToPci;
  if (above == PortType::kUpstream) return PortType::kDownstream;
  const auto below = children_.find(facts.address);
  const bool leads_to_bridge =
      below == children_.end() ||
      std::any_of(below->second.begin(), below->second.end(), [&](const std::string& address) {
        return devices_.at(address)->facts.is_bridge;
      });
  return leads_to_bridge ? PortType::kUpstream : PortType::kPcieToPci;
}

ConfigContext Kernel::ContextOf(const Device& device) const {
  const MachineDevice& facts = device.facts;
  ConfigContext context{.port = PortOf(device), .primary = BusOf(facts.address)};
  // Function 0 tells whether more follow; the others repeat it.
  const std::string slot = facts.address.substr(0, facts.address.rfind('.'));
  int functions = 0;
  for (auto next = devices_.lower_bound(slot + ".");
       next != devices_.end() && next->first.starts_with(slot + "."); ++next) {
    if (next->second->facts.physfn.empty()) ++functions;
  }
  context.multifunction = functions > 1;
  if (!facts.is_bridge) return context;
  context.secondary = facts.secondary;
  context.subordinate = facts.subordinate;
  const auto below = children_.find(facts.address);
  if (facts.secondary >= 0 || below == children_.end()) {
    context.secondary = std::max(context.secondary, 0);
    context.subordinate = std::max(context.subordinate, 0);
    return context;
  }
  for (const std::string& address : below->second) {
    const ConfigContext child = ContextOf(*devices_.at(address));
    if (context.secondary < 0) context.secondary = child.primary;
    context.subordinate = std::max({context.subordinate, child.primary, child.subordinate});
  }
  return context;
}

std::string Kernel::ConfigOf(const Device& device) const {
  return MakeConfigImage(device.facts, ContextOf(device));
}

}  // namespace vfio_agent::sim
