#include "test/iommu/hardware.h"

#include <algorithm>
#include <map>

#include "test/support/facts.h"

namespace vfio_agent {
namespace {

// Sets sorted by their first member; members are added in the order of their addresses.
std::string Print(const std::map<std::string, std::string>& sets) {
  std::vector<std::string> lines;
  for (const auto& entry : sets) lines.push_back(entry.second);
  std::ranges::sort(lines);
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

void AddMember(std::string& set, const PciAddress& address) {
  set += (set.empty() ? "" : " ") + address.ToString();
}

// Of the types that are always bridges; of conventional PCI the type does not tell.
bool IsPort(const Fact<PcieType>& type) {
  return type.is(PcieType::kRootPort) || type.is(PcieType::kUpstream) ||
         type.is(PcieType::kDownstream) || type.is(PcieType::kPcieToPci);
}

}  // namespace

PciDevice MakeFunction(const Part& part) {
  PciDevice device = Function(part.address, part.group, "", "fffe:0001", 0);
  device.config.pcie_type = part.type;
  device.config.acs = part.acs;
  device.config.multifunction = part.multifunction;
  device.config.is_bridge = IsPort(part.type);
  device.root = "pci" + part.address.substr(0, part.address.rfind(':'));
  return device;
}

NodeFacts MakeHardware(const std::vector<Part>& parts) {
  std::map<std::string, PciDevice> devices;
  for (const Part& part : parts) {
    PciDevice device = MakeFunction(part);
    if (!part.parent.empty()) {
      const PciDevice& above = devices.at(part.parent);
      device.path = above.path;
      device.path.push_back(above.address);
      device.parent = above.address;
      device.root = above.root;
    }
    devices.emplace(part.address, device);
  }
  std::vector<PciDevice> list;
  for (auto& entry : devices) list.push_back(entry.second);
  return Node(std::move(list));
}

std::string ComputedSets(const Grouping& grouping) {
  std::map<std::string, std::string> sets;
  for (const auto& [address, root] : grouping.root) AddMember(sets[root.ToString()], address);
  return Print(sets);
}

std::string KernelSets(const NodeFacts& facts) {
  std::map<std::string, std::string> sets;
  for (const PciDevice& device : facts.devices) {
    AddMember(sets[std::to_string(device.group.value_or(-1))], device.address);
  }
  return Print(sets);
}

}  // namespace vfio_agent
