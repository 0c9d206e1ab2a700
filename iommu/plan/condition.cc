#include "iommu/plan/condition.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_format.h"

namespace vfio_agent {
namespace {

std::string Because(Code code, const std::string& text) {
  return absl::StrFormat("%s: %s", CodeName(code), text);
}

// True for a unit that a pod can have: the device was ready in this boot, or somebody uses its
// group. Whatever is wrong with it, the kubelet must go on hearing of it. `held` with an address is
// another matter: a card with mediated devices, which no pod has.
bool CanBeAllocated(const Draft& draft, const PciDevice& device, const Records& records) {
  const auto record = records.find(device.address);
  return (record != records.end() && record->second.IsTaken()) ||
         std::ranges::any_of(draft.plan.refusals, [](const Refusal& why) {
           return why.code == Code::kHeld && !why.address;
         });
}

// Which member is no longer where the agent had brought it.
std::string WhatMoved(const Draft& draft, const Records& records) {
  for (size_t i = 0; i < draft.devices.size(); ++i) {
    const PciDevice& device = *draft.devices[i];
    const auto record = records.find(device.address);
    if (!WillBind(draft, i) || record == records.end() || !record->second.IsTaken()) continue;
    return Because(Code::kDriverChanged,
                   absl::StrFormat("%s is not on %s any more", Spell(device), record->second.to));
  }
  return "waits to be bound";
}

// What a guest opens: the group's node and the legacy container, or the cdevs of what it gets and
// /dev/iommu. Kernels have the one, the other or both.
std::string WhatNodeIsMissing(const Draft& draft, const Context& context) {
  const NodeFacts& facts = context.facts;
  const std::string group = GroupNodeName(facts, *draft.plan.group);
  const bool has_group = facts.vfio_nodes.contains(group);
  if (has_group && facts.vfio_nodes.contains("vfio")) return "";
  // Where guests go by groups, a node that is missing is missing, whatever cdevs there are.
  bool has_cdevs = facts.iommu_node;
  for (size_t i = 0; i < draft.devices.size(); ++i) {
    if (draft.plan.members[i].role != Role::kPrimary) continue;
    const auto& cdev = draft.devices[i]->vfio_cdev;
    has_cdevs = has_cdevs && cdev && facts.vfio_nodes.contains("devices/" + *cdev);
  }
  if (has_cdevs && context.policy.iommufd) return "";
  return absl::StrFormat("/dev/vfio/%s is not there%s", has_group ? "vfio" : group,
                         has_cdevs && !facts.vfio_nodes.contains("vfio")
                             ? ", since this kernel has iommufd alone: set kubelet.iommufd"
                             : "");
}

std::string WhatFailedFatally(const Draft& draft, const Context& context) {
  for (const PciDevice* device : draft.devices) {
    if (std::string text = vfio_agent::WhatFailedFatally(*device, context); !text.empty()) {
      return text;
    }
  }
  return "";
}

// Who else has something of the group, so that this unit of it must stay where it is.
std::string WhoHasSiblings(const Draft& draft, const PciAddress& unit, const Tenants& tenants) {
  for (const PciDevice* device : draft.devices) {
    if (device->address == unit) continue;
    const std::vector<PodClaim> pods = tenants.PodsOf(device->address);
    if (!pods.empty()) {
      return absl::StrFormat("%s has %s", Spell(pods.front()), device->address.ToString());
    }
    if (tenants.IsGranted(device->address)) {
      return absl::StrFormat("a pod has just been given %s", device->address.ToString());
    }
  }
  return "";
}

// Who has a device of the group as a part of a unit that is not composed so any more.
std::string WhoHasParts(const Draft& draft, const Tenants& tenants) {
  for (const PciDevice* device : draft.devices) {
    const PodClaim* const claim = tenants.WhoHasAsPart(device->address);
    if (claim == nullptr) continue;
    return absl::StrFormat("%s is a part of what %s has as %s", device->address.ToString(),
                           Spell(*claim), claim->unit);
  }
  return "";
}

size_t CountPrimaries(const Draft& draft) {
  return static_cast<size_t>(std::ranges::count(draft.plan.members, Role::kPrimary, &Member::role));
}

// Of a unit that is healthy in itself.
Condition ConditionOfTenant(const Draft& draft, const PciAddress& unit,
                            const std::vector<PodClaim>& pods, const Tenants& tenants) {
  const int group = *draft.plan.group;
  if (const auto claimed = ConditionByClaims(pods, draft.plan.resource)) return *claimed;
  if (const std::string who = WhoHasParts(draft, tenants); !who.empty()) {
    return {UnitState::kWithheld, Because(Code::kGroupSplit, who)};
  }
  if (tenants.IsGranted(unit)) return {UnitState::kHeld, "given to a pod a moment ago"};
  if (const std::string who = WhoHasSiblings(draft, unit, tenants); !who.empty()) {
    return {UnitState::kWithheld,
            Because(Code::kGroupSplit, absl::StrFormat("%s, of the same group %d", who, group))};
  }
  if (const std::vector<Holder>* holders = tenants.HoldersOf(group)) {
    return {UnitState::kUnhealthy,
            Because(Code::kInUseHolder, absl::StrFormat("group %d is open, and no pod has it: %s",
                                                        group, Spell(holders->front())))};
  }
  const std::string unknown = tenants.WhyUnknown();
  if (!unknown.empty() && CountPrimaries(draft) > 1) {
    return {UnitState::kWithheld,
            Because(Code::kGroupSplit,
                    absl::StrFormat("which pods have a part of group %d is not known: %s", group,
                                    unknown))};
  }
  if (!pods.empty()) return {UnitState::kHeld, Spell(pods.front())};
  return {UnitState::kReady, ""};
}

}  // namespace

std::optional<Condition> ConditionByClaims(const std::vector<PodClaim>& pods,
                                           const std::string& resource) {
  for (const PodClaim& pod : pods) {
    if (IsCertain(pod) && IsClaimFor(pod, resource)) return Condition{UnitState::kHeld, Spell(pod)};
  }
  for (const PodClaim& pod : pods) {
    if (IsClaimFor(pod, resource)) continue;
    return Condition{
        UnitState::kRefused,
        Because(Code::kHeld, absl::StrFormat("%s has it as %s", Spell(pod), pod.resource))};
  }
  return std::nullopt;
}

Tenants::Tenants(const Custody& custody) : tenancy_(custody.tenancy ? &*custody.tenancy : nullptr) {
  if (tenancy_ == nullptr) return;
  for (const PodClaim& claim : tenancy_->claims.list) {
    pods_.emplace(claim.unit, &claim);
    const auto given = custody.given.find({claim.resource, claim.unit});
    if (given == custody.given.end()) continue;
    for (const PciAddress& part : given->second) parts_.emplace(part, &claim);
  }
  for (const Grant& grant : tenancy_->grants) granted_.insert(grant.unit);
}

std::vector<PodClaim> Tenants::PodsOf(const PciAddress& unit) const {
  return pods_.empty() ? std::vector<PodClaim>() : PodsOf(unit.ToString());
}

std::vector<PodClaim> Tenants::PodsOf(const std::string& unit) const {
  std::vector<PodClaim> pods;
  const auto [first, last] = pods_.equal_range(unit);
  for (auto it = first; it != last; ++it) pods.push_back(*it->second);
  return pods;
}

const PodClaim* Tenants::WhoHasAsPart(const PciAddress& device) const {
  const auto found = parts_.find(device);
  return found == parts_.end() ? nullptr : found->second;
}

const std::vector<Holder>* Tenants::HoldersOf(int group) const {
  if (tenancy_ == nullptr) return nullptr;
  const auto open = tenancy_->open.find(group);
  return open == tenancy_->open.end() || open->second.empty() ? nullptr : &open->second;
}

std::string Tenants::WhyUnknown() const {
  return tenancy_ == nullptr || tenancy_->claims.known ? "" : tenancy_->claims.why_unknown;
}

Condition ConditionOf(const Draft& draft, const PciDevice& primary,
                      const std::vector<PodClaim>& pods, const Tenants& tenants,
                      const Context& context) {
  return ConditionOfPart(draft, primary, primary.address, pods, tenants, context);
}

Condition ConditionOfPart(const Draft& draft, const PciDevice& part, const PciAddress& unit,
                          const std::vector<PodClaim>& pods, const Tenants& tenants,
                          const Context& context) {
  const Custody& custody = context.custody;
  const bool allocated = CanBeAllocated(draft, part, custody.records);
  if (draft.plan.verdict == Verdict::kBind) {
    return {allocated ? UnitState::kUnhealthy : UnitState::kToBind,
            WhatMoved(draft, custody.records)};
  }
  if (draft.plan.verdict == Verdict::kBound) {
    if (const std::string missing = WhatNodeIsMissing(draft, context); !missing.empty()) {
      return {UnitState::kUnhealthy, Because(Code::kNodeMissing, missing)};
    }
    if (const std::string fatal = WhatFailedFatally(draft, context); !fatal.empty()) {
      return {UnitState::kUnhealthy, Because(Code::kAerFatal, fatal)};
    }
    return ConditionOfTenant(draft, unit, pods, tenants);
  }
  Condition condition{allocated && draft.plan.group ? UnitState::kUnhealthy : UnitState::kRefused,
                      ""};
  if (draft.plan.refusals.empty()) return condition;
  const Refusal& first = draft.plan.refusals.front();
  condition.reason = Because(first.code, first.text);
  return condition;
}

std::string WhatFailedFatally(const PciDevice& device, const Context& context) {
  const auto before = context.custody.fatal_before.find(device.address);
  if (before == context.custody.fatal_before.end()) return "";
  const uint64_t count = FatalErrors(context.facts, device);
  if (count <= before->second) return "";
  return absl::StrFormat(
      "%d fatal PCIe errors (AER) at %s or its root port, since it was looked at first",
      count - before->second, Spell(device));
}

std::string Spell(const PodClaim& claim) {
  if (IsResourceClaim(claim)) {
    return absl::StrFormat("ResourceClaim %s/%s", claim.pod_namespace, claim.pod);
  }
  if (claim.container == kPerhaps) return NameOf(claim);
  return absl::StrFormat("pod %s (container %s)", NameOf(claim), claim.container);
}

}  // namespace vfio_agent
