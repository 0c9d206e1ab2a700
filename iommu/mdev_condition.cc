#include "absl/strings/str_format.h"
#include "iommu/condition.h"

namespace vfio_agent {
namespace {

Condition Because(UnitState state, Code code, const std::string& text) {
  return {state, absl::StrFormat("%s: %s", CodeName(code), text)};
}

}  // namespace

Condition ConditionOfLone(const std::string& unit, int group, const std::string& resource,
                          const std::vector<PodClaim>& pods, const Tenants& tenants) {
  for (const PodClaim& pod : pods) {
    if (pod.resource == resource) return {UnitState::kHeld, Spell(pod)};
  }
  if (!pods.empty()) {
    return Because(UnitState::kRefused, Code::kHeld,
                   absl::StrFormat("%s has it as %s", Spell(pods.front()), pods.front().resource));
  }
  if (tenants.IsGranted(unit)) return {UnitState::kHeld, "given to a pod a moment ago"};
  const std::vector<Holder>* const holders = tenants.HoldersOf(group);
  if (holders == nullptr) return {UnitState::kReady, ""};
  return Because(
      UnitState::kUnhealthy, Code::kInUseHolder,
      absl::StrFormat("group %d is open, and no pod has it: %s", group, Spell(holders->front())));
}

Condition ConditionOfMdev(const MdevInstance& mdev, const std::string& resource,
                          const std::vector<PodClaim>& pods, const Tenants& tenants,
                          const NodeFacts& facts) {
  if (!mdev.group) {
    return Because(UnitState::kRefused, Code::kNoIommuGroup, mdev.uuid + " has no group");
  }
  if (!mdev.driver) {
    return Because(UnitState::kUnhealthy, Code::kDriverChanged,
                   mdev.uuid + " is bound to no driver");
  }
  for (const std::string& node : {absl::StrFormat("%d", *mdev.group), std::string("vfio")}) {
    if (facts.vfio_nodes.contains(node)) continue;
    return Because(UnitState::kUnhealthy, Code::kNodeMissing,
                   absl::StrFormat("/dev/vfio/%s is not there", node));
  }
  return ConditionOfLone(mdev.uuid, *mdev.group, resource, pods, tenants);
}

}  // namespace vfio_agent
