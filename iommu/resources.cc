#include <algorithm>

#include "absl/strings/str_format.h"
#include "iommu/naming.h"
#include "iommu/planning.h"

namespace vfio_agent {
namespace {

UnitState StateOf(const Draft& draft, const NodeFacts& facts, std::string& reason) {
  switch (draft.plan.verdict) {
    case Verdict::kBind:
      reason = "waits to be bound";
      return UnitState::kToBind;
    case Verdict::kBound:
      if (facts.vfio_nodes.contains(absl::StrFormat("%d", *draft.plan.group))) {
        return UnitState::kReady;
      }
      reason = absl::StrFormat("%s: /dev/vfio/%d is not there", CodeName(Code::kNodeMissing),
                               *draft.plan.group);
      return UnitState::kUnhealthy;
    default:
      if (!draft.plan.refusals.empty()) {
        const Refusal& first = draft.plan.refusals.front();
        reason = absl::StrFormat("%s: %s", CodeName(first.code), first.text);
      }
      return UnitState::kRefused;
  }
}

std::vector<Unit> UnitsOf(const Draft& draft, const NodeFacts& facts) {
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
    unit.state = StateOf(draft, facts, unit.reason);
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
    std::ranges::move(UnitsOf(draft, context.facts), std::back_inserter(resource.units));
  }
  std::vector<Resource> list;
  for (auto& entry : resources) {
    std::ranges::sort(entry.second.units, {}, &Unit::primary);
    list.push_back(std::move(entry.second));
  }
  return list;
}

}  // namespace vfio_agent
