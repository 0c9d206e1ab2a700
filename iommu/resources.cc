#include <algorithm>

#include "absl/strings/str_format.h"
#include "iommu/naming.h"
#include "iommu/planning.h"

namespace vfio_agent {
namespace {

// True for a unit that a pod can have: the device was ready in this boot, or somebody uses it.
// Whatever is wrong with it, the kubelet must go on hearing of it.
bool CanBeAllocated(const Draft& draft, const PciDevice& device, const Records& records) {
  const auto record = records.find(device.address);
  return (record != records.end() && record->second.IsTaken()) ||
         std::ranges::count(draft.plan.refusals, Code::kHeld, &Refusal::code) > 0;
}

// Which member is no longer where the agent had brought it.
std::string WhatMoved(const Draft& draft, const Records& records) {
  for (size_t i = 0; i < draft.devices.size(); ++i) {
    const PciDevice& device = *draft.devices[i];
    const auto record = records.find(device.address);
    if (!WillBind(draft, i) || record == records.end() || !record->second.IsTaken()) continue;
    return absl::StrFormat("%s: %s is not on %s any more", CodeName(Code::kDriverChanged),
                           Spell(device), record->second.to);
  }
  return "waits to be bound";
}

struct Condition {
  UnitState state = UnitState::kRefused;
  std::string reason;
};

Condition ConditionOf(const Draft& draft, const PciDevice& primary, const Context& context) {
  const bool allocated = CanBeAllocated(draft, primary, context.custody.records);
  if (draft.plan.verdict == Verdict::kBind) {
    return {allocated ? UnitState::kUnhealthy : UnitState::kToBind,
            WhatMoved(draft, context.custody.records)};
  }
  if (draft.plan.verdict == Verdict::kBound) {
    const std::string node = absl::StrFormat("%d", *draft.plan.group);
    if (context.facts.vfio_nodes.contains(node)) return {UnitState::kReady, ""};
    return {UnitState::kUnhealthy,
            absl::StrFormat("%s: /dev/vfio/%s is not there", CodeName(Code::kNodeMissing), node)};
  }
  Condition condition{allocated && draft.plan.group ? UnitState::kUnhealthy : UnitState::kRefused,
                      ""};
  if (draft.plan.refusals.empty()) return condition;
  const Refusal& first = draft.plan.refusals.front();
  condition.reason = absl::StrFormat("%s: %s", CodeName(first.code), first.text);
  return condition;
}

std::vector<Unit> UnitsOf(const Draft& draft, const Context& context) {
  std::vector<Unit> units;
  for (size_t i = 0; i < draft.devices.size(); ++i) {
    if (draft.plan.members[i].role != Role::kPrimary) continue;
    const PciDevice& device = *draft.devices[i];
    if (draft.rule->shared_group == SharedGroup::kUnit && !units.empty()) {
      units.front().addresses.push_back(device.address);
      continue;
    }
    Unit unit{.id = device.address.ToString(),
              .primary = device.address,
              .addresses = {device.address},
              .group = draft.plan.group,
              .numa_node = device.numa_node};
    const Condition condition = ConditionOf(draft, device, context);
    unit.state = condition.state;
    unit.reason = condition.reason;
    units.push_back(std::move(unit));
  }
  return units;
}

const PciDevice& FirstPrimary(const Draft& draft) {
  for (size_t i = 0; i < draft.devices.size(); ++i) {
    if (draft.plan.members[i].role == Role::kPrimary) return *draft.devices[i];
  }
  return *draft.devices.front();
}

}  // namespace

void RefuseBadNames(std::vector<Draft>& drafts) {
  std::map<std::string, std::string> variables;  // variable -> the resource that has it
  for (Draft& draft : drafts) {
    if (!draft.Selected()) continue;
    const PciDevice& device = FirstPrimary(draft);
    const std::string& name = draft.plan.resource;
    if (const absl::Status status = CheckResourceName(name); !status.ok()) {
      Refuse(draft, Code::kNameInvalid, &device, std::string(status.message()));
    }
    const auto [owner, fresh] = variables.try_emplace(ResourceVariable(name), name);
    if (!fresh && owner->second != name) {
      Refuse(draft, Code::kNameCollision, &device,
             absl::StrFormat("'%s' and '%s' would share the variable %s", name, owner->second,
                             owner->first));
    }
  }
}

std::vector<Resource> MakeResources(const std::vector<Draft>& drafts, const Context& context) {
  std::map<std::string, Resource> resources;
  for (const Draft& draft : drafts) {
    if (!draft.Selected()) continue;
    Resource& resource = resources[draft.plan.resource];
    if (resource.units.empty()) {
      const PciDevice& device = FirstPrimary(draft);
      resource.name = draft.plan.resource;
      resource.vendor = device.vendor;
      resource.device = device.device;
      resource.numa = draft.rule->numa;
    }
    std::ranges::move(UnitsOf(draft, context), std::back_inserter(resource.units));
  }
  std::vector<Resource> list;
  for (auto& entry : resources) {
    std::ranges::sort(entry.second.units, {}, &Unit::primary);
    list.push_back(std::move(entry.second));
  }
  return list;
}

}  // namespace vfio_agent
