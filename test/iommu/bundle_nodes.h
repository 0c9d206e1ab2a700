// A small board of GPUs, NICs and NVSwitches, and policies that make bundles of it.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "iommu/bundle/bundle.h"
#include "test/support/facts.h"

namespace vfio_agent {

inline constexpr char kBundleName[] = "nvidia.com/board";

// Below the switch `bridge` on a root bus of its own, in NUMA node `node`.
inline PciDevice Under(const std::string& bridge, int node, PciDevice device) {
  device.root = "pci" + bridge.substr(0, 7);
  device.path = {At(bridge)};
  device.numa_node = node;
  return device;
}

inline PciDevice Nic(std::string_view address, int group) {
  return Function(address, group, "vfio-pci", "15b3:1021", 0x020700);
}
inline PciDevice Nvswitch(std::string_view address, int group) {
  return Function(address, group, "vfio-pci", "10de:22a3", 0x068000);
}

inline BundleMember Gpus(size_t count) {
  return {.select = {{.vendor = 0x10de, .classes = {"0302"}}}, .count = count};
}
inline BundleMember Nics(size_t count, bool same_switch = false) {
  return {.select = {{.vendor = 0x15b3}}, .count = count, .same_switch = same_switch};
}
inline BundleMember Nvswitches(size_t count = 0) {
  return {.select = {{.vendor = 0x10de, .device = 0x22a3}}, .count = count};
}

inline Policy Bundled(const std::vector<BundleMember>& members) {
  ResourceRule rule{.name = kBundleName, .bundle = members};
  for (const BundleMember& member : members) {
    rule.select.insert(rule.select.end(), member.select.begin(), member.select.end());
  }
  return {.resources = {rule}};
}

// Four GPUs, each with a NIC under its switch, two on each node, and two NVSwitches on node 0.
inline NodeFacts SmallBoard() {
  std::vector<PciDevice> devices;
  for (int i = 0; i < 4; ++i) {
    const std::string bridge = absl::StrFormat("0000:%d0:00.0", i + 1);
    devices.push_back(
        Under(bridge, i / 2, Gpu(absl::StrFormat("0000:%d1:00.0", i + 1), 10 + i, "vfio-pci")));
    // The NICs' addresses run against those of the GPUs.
    devices.push_back(Under(bridge, i / 2, Nic(absl::StrFormat("0000:%d2:00.0", i + 1), 20 + i)));
  }
  devices.push_back(Under("0000:01:00.0", 0, Nvswitch("0000:02:00.0", 1)));
  devices.push_back(Under("0000:01:00.0", 0, Nvswitch("0000:03:00.0", 2)));
  return Node(devices);
}

// "0000:11:00.0+0000:12:00.0 ready", one line for each unit.
inline std::string Units(const Plan& plan) {
  std::string text;
  for (const Unit& unit : plan.resources.at(0).units) {
    text += absl::StrJoin(unit.addresses, "+",
                          [](std::string* out, const PciAddress& address) {
                            out->append(address.ToString().substr(5, 2));
                          }) +
            " " + std::string(Name(unit.state)) + "\n";
  }
  return text;
}
inline Plan PlanOf(const NodeFacts& facts, const Policy& policy, const Custody& custody = {}) {
  return MakePlan(facts, policy, TestNames(), custody);
}

}  // namespace vfio_agent
