// Nodes with parents of mediated devices, for the tests of planning.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "iommu/mdev/mdev.h"
#include "test/support/facts.h"

namespace vfio_agent {

inline constexpr char kT4[] = "0000:3b:00.0";
inline constexpr char kT4b[] = "0000:5e:00.0";
inline constexpr char kT4c[] = "0000:af:00.0";
inline constexpr char kQ1[] = "nvidia.com/GRID_T4-1Q";
inline constexpr char kForeign[] = "83b8f4f2-509f-382f-3c1e-e6bfe0fa1001";

inline PciDevice T4(std::string_view address, int group, int node) {
  PciDevice device = Function(address, group, "nvidia", "10de:1eb8", 0x030200);
  device.numa_node = node;
  return device;
}

inline MdevParent ParentOf(std::string_view address, int available = 4) {
  return {At(address),
          {{"nvidia-222", "GRID T4-1Q", available}, {"nvidia-225", "GRID T4-4Q", available / 2}}};
}

// Two on NUMA node 0, one on node 1.
inline NodeFacts ThreeParents() {
  NodeFacts facts = Node({T4(kT4, 5, 0), T4(kT4b, 6, 0), T4(kT4c, 7, 1)});
  for (const char* address : {kT4, kT4b, kT4c}) facts.mdev.parents.push_back(ParentOf(address));
  return facts;
}

inline void AddInstance(NodeFacts& facts, const std::string& uuid, std::string_view parent,
                        int group, const std::string& type = "nvidia-222") {
  facts.mdev.instances.push_back({uuid, At(parent), type, group, "nvidia-vgpu-vfio"});
  std::ranges::sort(facts.mdev.instances, {}, &MdevInstance::uuid);
  facts.vfio_nodes.insert(std::to_string(group));
}

inline Policy Wanting(std::vector<MdevCount> types, MdevSpread spread = MdevSpread::kEach,
                      std::vector<Selector> parents = {{.vendor = uint16_t{0x10de}}}) {
  Policy policy = DefaultPolicy();
  policy.mdev = {{.parents = std::move(parents), .types = std::move(types), .spread = spread}};
  return policy;
}

inline Plan PlanFor(const NodeFacts& facts, const Policy& policy, const Custody& custody = {}) {
  return MakePlan(facts, policy, TestNames(), custody);
}

// How many are made on each parent: "3b:2 5e:1".
inline std::string Created(const Plan& plan) {
  std::string text;
  for (const GroupPlan& group : plan.groups) {
    if (group.actions.empty()) continue;
    text += group.members.front().address.ToString().substr(5, 2) + ":" +
            std::to_string(group.actions.size()) + " ";
  }
  return text;
}

inline const Resource* Named(const Plan& plan, std::string_view name) {
  const auto found = std::ranges::find(plan.resources, name, &Resource::name);
  return found == plan.resources.end() ? nullptr : &*found;
}

inline std::string States(const Plan& plan, std::string_view name = kQ1) {
  std::string text;
  const Resource* const resource = Named(plan, name);
  if (resource == nullptr) return "none";
  for (const Unit& unit : resource->units) text += std::string(Name(unit.state)) + " ";
  return text;
}

}  // namespace vfio_agent
