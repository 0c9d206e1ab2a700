#include <algorithm>

#include "absl/strings/str_format.h"
#include "iommu/plan/planning.h"
#include "iommu/policy/naming.h"
#include "iommu/vgpu/vgpu.h"

namespace vfio_agent {
namespace {

// A VF answers to its PF's ids and class, but is no whole device; and what somebody plugs into a
// port that leads out of the machine is nobody's until an operator says so. Only a selector that
// names their very address can mean these two.
bool Selects(const ResourceRule& rule, const PciDevice& device) {
  return std::ranges::any_of(rule.select, [&device](const Selector& selector) {
    return ((!device.IsVf() && !device.removable) || selector.address) && Matches(selector, device);
  });
}

// The first entry whose selectors fit and whose exclusions do not.
const ResourceRule* FirstFit(const Policy& policy, const PciDevice& device) {
  if (device.IsBridge() || StaysWithDriver(policy, device)) return nullptr;
  for (const ResourceRule& rule : policy.resources) {
    if (Selects(rule, device) && !MatchesAny(rule.exclude, device)) return &rule;
  }
  return nullptr;
}

// The entry that gives away the virtual functions of `device`, which it does not touch itself.
const ResourceRule* FindMaker(const Policy& policy, const PciDevice& device) {
  const ResourceRule* const rule = device.IsVf() ? nullptr : FirstFit(policy, device);
  return rule != nullptr && rule->sriov ? rule : nullptr;
}

bool ToMakeVfs(const Policy& policy, const PciDevice& device) {
  const ResourceRule* const rule = FindMaker(policy, device);
  return rule != nullptr && rule->sriov->vfs;
}

// The entry that gives away the virtual functions of the one that `device` is a VF of.
const ResourceRule* MakerOfVf(const Context& context, const PciDevice& device) {
  const PciDevice* const physical =
      device.IsVf() && !device.IsBridge() ? FindDevice(context.facts, *device.physfn) : nullptr;
  if (physical == nullptr || StaysWithDriver(context.policy, device)) return nullptr;
  return FindMaker(context.policy, *physical);
}

// A VF goes by what its physical function was selected for.
const ResourceRule* FindVfRule(const Context& context, const PciDevice& device) {
  const ResourceRule* const rule = MakerOfVf(context, device);
  return rule == nullptr || MatchesAny(rule->exclude, device) ? nullptr : rule;
}

// The entry that `device` is given away by.
const ResourceRule* FindRule(const Context& context, const PciDevice& device) {
  if (const ResourceRule* const rule = FindVfRule(context, device)) return rule;
  const ResourceRule* const rule = FirstFit(context.policy, device);
  return rule == nullptr || rule->sriov ? nullptr : rule;
}

// Plugged in from outside, and selected by something else than its address.
bool IsFromOutside(const Policy& policy, const PciDevice& device) {
  return device.removable && !device.IsVf() && !device.IsBridge() &&
         !StaysWithDriver(policy, device) &&
         std::ranges::any_of(policy.resources, [&device](const ResourceRule& rule) {
           return MatchesAny(rule.select, device) && !MatchesAny(rule.exclude, device);
         });
}

bool IsExcluded(const Context& context, const PciDevice& device) {
  const Policy& policy = context.policy;
  const ResourceRule* const maker = MakerOfVf(context, device);
  if (maker != nullptr && MatchesAny(maker->exclude, device)) return true;
  return !device.IsBridge() && !StaysWithDriver(policy, device) &&
         std::ranges::any_of(policy.resources, [&device](const ResourceRule& rule) {
           return Selects(rule, device) && MatchesAny(rule.exclude, device);
         });
}

// A companion is another function of a selected slot in the same group; never one of another
// slot, and never one that the configuration keeps out.
bool IsCompanion(const Draft& draft, const PciDevice& device) {
  for (size_t i = 0; i < draft.devices.size(); ++i) {
    const ResourceRule* const rule = draft.rules[i];
    if (rule == nullptr || MatchesAny(rule->exclude, device)) continue;
    switch (rule->companions) {
      case Companions::kSameSlot:
        if (SameSlot(draft.devices[i]->address, device.address)) return true;
        break;
      case Companions::kListed:
        if (MatchesAny(rule->companion_list, device)) return true;
        break;
      case Companions::kNone:
        break;
    }
  }
  return false;
}

bool IsAllowed(const Draft& draft, const PciDevice& device) {
  return std::ranges::any_of(draft.rules, [&device](const ResourceRule* rule) {
    return rule != nullptr && MatchesAny(rule->allow_members, device);
  });
}

Role FindRole(const Draft& draft, size_t i, const Context& context) {
  const PciDevice& device = *draft.devices[i];
  if (device.IsBridge()) return Role::kBridge;
  if (const ResourceRule* const rule = draft.rules[i]; rule != nullptr) {
    // A group is one owner's: members that belong to other resources ride along with the first.
    const std::string name = ResourceName(*rule, device, context.policy, context.names);
    return name == draft.plan.resource ? Role::kPrimary : Role::kAllowed;
  }
  // It is the host's, be it in the group of what is given away.
  if (draft.makers[i] != nullptr) return draft.Selected() ? Role::kForeign : Role::kPhysical;
  if (IsCompanion(draft, device)) return Role::kCompanion;
  return IsAllowed(draft, device) ? Role::kAllowed : Role::kForeign;
}

// The selected member whose entry stands first in the configuration names the group's resource.
void ChooseResource(Draft& draft, const Context& context) {
  const PciDevice* first = nullptr;
  for (size_t i = 0; i < draft.devices.size(); ++i) {
    if (draft.rules[i] == nullptr) continue;
    if (draft.rule != nullptr && draft.rule <= draft.rules[i]) continue;
    draft.rule = draft.rules[i];  // entries lie in one vector: the lower address is the earlier
    first = draft.devices[i];
  }
  if (first == nullptr) return;
  draft.plan.resource = ResourceName(*draft.rule, *first, context.policy, context.names);
}

void AddDevice(Draft& draft, const PciDevice& device, const Context& context) {
  draft.devices.push_back(&device);
  draft.rules.push_back(FindRule(context, device));
  draft.makers.push_back(FindMaker(context.policy, device));
  draft.plan.members.push_back({.address = device.address,
                                .vendor = device.vendor,
                                .device = device.device,
                                .class_code = device.class_code,
                                .driver = device.driver});
}

void Finish(Draft& draft, const Context& context) {
  ChooseResource(draft, context);
  const bool maker = std::ranges::any_of(draft.makers, [](const auto* rule) { return rule; });
  for (size_t i = 0; i < draft.devices.size(); ++i) {
    draft.plan.members[i].role = FindRole(draft, i, context);
    if (!draft.Selected() && !maker && IsExcluded(context, *draft.devices[i])) {
      Refuse(draft, Code::kExcluded, draft.devices[i],
             absl::StrFormat("%s is excluded by the configuration", Spell(*draft.devices[i])));
    }
    if (!draft.Selected() && IsFromOutside(context.policy, *draft.devices[i])) {
      Refuse(draft, Code::kExcluded, draft.devices[i],
             absl::StrFormat("%s is plugged into a port that leads out of the machine",
                             Spell(*draft.devices[i])),
             "name its address in resources[].select if guests may have it");
    }
  }
}

}  // namespace

std::vector<Draft> DraftGroups(const Context& context) {
  std::map<int, Draft> groups;
  std::vector<Draft> lone;
  for (const PciDevice& device : context.facts.devices) {
    if (device.group) {
      Draft& draft = groups[*device.group];
      draft.plan.group = *device.group;
      AddDevice(draft, device, context);
    } else if (FindRule(context, device) != nullptr || ToMakeVfs(context.policy, device)) {
      AddDevice(lone.emplace_back(), device, context);
    }
  }
  std::vector<Draft> drafts;
  drafts.reserve(groups.size() + lone.size());
  for (auto& entry : groups) drafts.push_back(std::move(entry.second));
  for (Draft& draft : lone) drafts.push_back(std::move(draft));
  for (Draft& draft : drafts) Finish(draft, context);
  return drafts;
}

}  // namespace vfio_agent
