// Nodes with virtual functions that take vGPU types, for the tests of planning.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "iommu/vgpu/vgpu.h"
#include "test/support/facts.h"

namespace vfio_agent {

inline constexpr char kCardA[] = "0000:41:00.0";
inline constexpr char kA4[] = "0000:41:00.4";
inline constexpr char kA5[] = "0000:41:00.5";
inline constexpr char kA6[] = "0000:41:00.6";
inline constexpr char kCardB[] = "0000:c1:00.0";
inline constexpr char kB4[] = "0000:c1:00.4";
inline constexpr char kOneB[] = "nvidia.com/NVIDIA_L40S-1B";
inline const std::vector<VgpuType> kTypes = {{1145, "NVIDIA L40S-1B"}, {1153, "NVIDIA L40S-48Q"}};

inline PciDevice L40s(std::string_view address, int group, int node = 0) {
  PciDevice device = Function(address, group, "nvidia", "10de:26b9", 0x030200);
  device.numa_node = node;
  return device;
}

inline PciDevice L40sVf(std::string_view address, int group, std::string_view physfn) {
  PciDevice device = L40s(address, group);
  device.physfn = At(physfn);
  return device;
}

// A card in group 5 whose three functions, groups 20 to 22, can be anything.
inline NodeFacts OneCard() {
  NodeFacts facts = Node(
      {L40s(kCardA, 5), L40sVf(kA4, 20, kCardA), L40sVf(kA5, 21, kCardA), L40sVf(kA6, 22, kCardA)});
  for (const char* vf : {kA4, kA5, kA6}) {
    Find(facts, kCardA).virtfns.push_back(At(vf));
    facts.vgpu.functions.push_back({At(vf), At(kCardA), Fact<int>(0), kTypes});
  }
  facts.vfio_nodes.insert("vfio");
  return facts;
}

// And another, on NUMA node 1, with one function.
inline NodeFacts TwoCards() {
  NodeFacts facts = OneCard();
  NodeFacts more = Node({L40s(kCardB, 6, 1), L40sVf(kB4, 30, kCardB)});
  more.devices[0].virtfns = {At(kB4)};
  facts.devices.insert(facts.devices.end(), more.devices.begin(), more.devices.end());
  facts.groups.merge(more.groups);
  facts.vgpu.functions.push_back({At(kB4), At(kCardB), Fact<int>(0), kTypes});
  return facts;
}

// As the driver shows it once `vf` has `type`; the group's node is there then.
inline void SetType(NodeFacts& facts, std::string_view vf, int type) {
  for (VgpuFunction& function : facts.vgpu.functions) {
    if (function.address != At(vf)) continue;
    function.current = Fact<int>(type);
    function.creatable.clear();
  }
  facts.vfio_nodes.insert(std::to_string(*Find(facts, vf).group));
}

// A full card lists nothing.
inline void Fill(NodeFacts& facts) {
  for (VgpuFunction& function : facts.vgpu.functions) function.creatable.clear();
}

inline Policy WantingVgpus(std::vector<MdevCount> types, MdevSpread spread = MdevSpread::kEach) {
  Policy policy = DefaultPolicy();
  policy.vgpu = {
      {.parents = {{.vendor = uint16_t{0x10de}}}, .types = std::move(types), .spread = spread}};
  return policy;
}

inline Plan PlanFor(const NodeFacts& facts, const Policy& policy,
                    const Custody& custody = Asked()) {
  return MakePlan(facts, policy, TestNames(), custody);
}

// The journal of this boot: the agent gave these functions that type.
inline Records Given(const std::vector<std::string>& functions, int type = 1145,
                     const std::string& step = kStepDone) {
  Records records;
  for (const std::string& function : functions) {
    records[At(function)] = {.address = At(function),
                             .boot_id = "boot",
                             .members = {At(function)},
                             .driver = "nvidia",
                             .step = step,
                             .this_boot = true,
                             .vgpu_type = type,
                             .vgpu_name = "NVIDIA L40S-1B"};
  }
  return records;
}

// What is written, one command a line.
inline std::string Written(const Plan& plan) {
  std::string text;
  for (const GroupPlan& group : plan.groups) {
    for (const Action& action : group.actions) {
      if (OpName(action) == "set-vgpu-type") {
        text += DeviceOf(action)->ToString() + "=" + ValueOf(action) + " ";
      }
    }
  }
  return text;
}

inline const Resource* Named(const Plan& plan, std::string_view name) {
  const auto found = std::ranges::find(plan.resources, name, &Resource::name);
  return found == plan.resources.end() ? nullptr : &*found;
}

inline std::string States(const Plan& plan, std::string_view name = kOneB) {
  const Resource* const resource = Named(plan, name);
  if (resource == nullptr) return "none";
  std::string text;
  for (const Unit& unit : resource->units) text += std::string(Name(unit.state)) + " ";
  return text;
}

}  // namespace vfio_agent
