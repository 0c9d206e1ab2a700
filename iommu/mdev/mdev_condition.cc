#include "absl/strings/str_format.h"
#include "iommu/plan/condition.h"

namespace vfio_agent {
namespace {

Condition Because(UnitState state, Code code, const std::string& text) {
  return {state, absl::StrFormat("%s: %s", CodeName(code), text)};
}

// The group's node and the legacy container, or the cdev and /dev/iommu: as with PCI functions.
std::string WhatNodeIsMissing(const MdevInstance& mdev, const NodeFacts& facts,
                              const Policy& policy) {
  const std::string group = absl::StrFormat("%d", *mdev.group);
  const bool has_group = facts.vfio_nodes.contains(group);
  const bool has_container = facts.vfio_nodes.contains("vfio");
  if (has_group && has_container) return "";
  const bool has_cdev =
      facts.iommu_node && mdev.cdev && facts.vfio_nodes.contains("devices/" + *mdev.cdev);
  if (has_cdev && policy.iommufd) return "";
  return absl::StrFormat("/dev/vfio/%s is not there%s", has_group ? "vfio" : group,
                         has_cdev && !has_container
                             ? ", since this kernel has iommufd alone: set kubelet.iommufd"
                             : "");
}

}  // namespace

Condition ConditionOfLone(const std::string& unit, int group, const std::string& resource,
                          const std::vector<PodClaim>& pods, const Tenants& tenants) {
  if (const auto claimed = ConditionByClaims(pods, resource)) return *claimed;
  if (tenants.IsGranted(unit)) return {UnitState::kHeld, "given to a pod a moment ago"};
  const std::vector<Holder>* const holders = tenants.HoldersOf(group);
  if (holders == nullptr) {
    return pods.empty() ? Condition{UnitState::kReady, ""}
                        : Condition{UnitState::kHeld, Spell(pods.front())};
  }
  return Because(
      UnitState::kUnhealthy, Code::kInUseHolder,
      absl::StrFormat("group %d is open, and no pod has it: %s", group, Spell(holders->front())));
}

Condition ConditionOfMdev(const MdevInstance& mdev, const std::string& resource,
                          const std::vector<PodClaim>& pods, const Tenants& tenants,
                          const NodeFacts& facts, const Policy& policy) {
  if (!mdev.group) {
    return Because(UnitState::kRefused, Code::kNoIommuGroup, mdev.uuid + " has no group");
  }
  if (!mdev.driver) {
    return Because(UnitState::kUnhealthy, Code::kDriverChanged,
                   mdev.uuid + " is bound to no driver");
  }
  if (std::string missing = WhatNodeIsMissing(mdev, facts, policy); !missing.empty()) {
    return Because(UnitState::kUnhealthy, Code::kNodeMissing, missing);
  }
  return ConditionOfLone(mdev.uuid, *mdev.group, resource, pods, tenants);
}

}  // namespace vfio_agent
