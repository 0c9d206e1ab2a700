#include <fnmatch.h>

#include <algorithm>

#include "absl/strings/str_format.h"
#include "iommu/plan/planning.h"

namespace vfio_agent {
namespace {

constexpr char kVfioPci[] = "vfio-pci";

struct Driver {
  std::string name;    // the directory below sys/bus/pci/drivers
  std::string module;  // to be loaded when the directory is not there
};

// Modules spell their names with '_', driver directories with '-' or '_': take what exists. Before
// the module is loaded its own spelling is the better guess: all variants but vfio-pci itself name
// the driver after the module (KBUILD_MODNAME).
std::string DriverDirectory(const NodeFacts& facts, const std::string& name) {
  if (facts.drivers.contains(name)) return name;
  std::string dashed = name;
  std::ranges::replace(dashed, '_', '-');
  return dashed == kVfioPci || facts.drivers.contains(dashed) ? dashed : name;
}

// Fewest wildcards wins: how modprobe's users choose among aliases.
Driver FindVariant(const NodeFacts& facts, const PciDevice& device) {
  const VfioAlias* best = nullptr;
  for (const VfioAlias& alias : facts.modules.vfio_aliases) {
    if (::fnmatch(alias.pattern.c_str(), device.modalias.c_str(), 0) != 0) continue;
    if (best == nullptr ||
        std::ranges::count(alias.pattern, '*') < std::ranges::count(best->pattern, '*')) {
      best = &alias;
    }
  }
  if (best == nullptr) return {.name = kVfioPci, .module = kVfioPci};
  return {.name = DriverDirectory(facts, best->module), .module = best->module};
}

Driver ChooseDriver(const NodeFacts& facts, const ResourceRule& rule, const PciDevice& device,
                    Role role) {
  if (role != Role::kPrimary) return {.name = kVfioPci, .module = kVfioPci};
  if (rule.vfio_driver == "auto") return FindVariant(facts, device);
  return {.name = DriverDirectory(facts, rule.vfio_driver), .module = rule.vfio_driver};
}

bool Loadable(const ModuleFacts& modules, const Driver& driver) {
  if (driver.name == kVfioPci) return modules.vfio_pci_installed;
  return std::ranges::any_of(modules.vfio_aliases, [&driver](const VfioAlias& alias) {
    return alias.module == driver.module;
  });
}

void AddLoad(Draft& draft, const std::string& module) {
  const Action load = LoadModule{module};
  if (!std::ranges::count(draft.plan.actions, load)) draft.plan.actions.push_back(load);
}

void PlanMember(const Context& context, Draft& draft, size_t i) {
  const PciDevice& device = *draft.devices[i];
  Member& member = draft.plan.members[i];
  if (member.role == Role::kBridge) {
    member.action = MemberAction::kKeep;
    return;
  }
  if (member.role == Role::kForeign) return;
  if (IsOnVfio(device)) {
    member.action = MemberAction::kKeep;
    return;
  }
  const Driver driver = ChooseDriver(context.facts, *draft.rule, device, member.role);
  member.action = MemberAction::kBind;
  member.to = driver.name;
  if (!context.facts.drivers.contains(driver.name)) {
    if (!Loadable(context.facts.modules, driver)) {
      Refuse(draft, Code::kVfioDriverMissing, &device,
             absl::StrFormat("the kernel has no driver %s loaded, and the module is not installed",
                             driver.name));
    }
    AddLoad(draft, driver.module);
  }
}

void AddSteps(Draft& draft) {
  for (size_t i = 0; i < draft.devices.size(); ++i) {
    const Member& member = draft.plan.members[i];
    if (member.action != MemberAction::kBind) continue;
    // Some never wake from D3cold, and vfio-pci sends what nobody uses to sleep.
    if (draft.devices[i]->d3cold_allowed.is(true)) {
      draft.plan.actions.push_back(SetD3cold{member.address, false});
    }
    draft.plan.actions.push_back(SetOverride{member.address, member.to});
    if (member.driver) draft.plan.actions.push_back(Unbind{member.address, *member.driver});
    draft.plan.actions.push_back(Probe{member.address, member.to});
  }
  if (!draft.plan.actions.empty()) draft.plan.actions.push_back(AwaitNode{*draft.plan.group});
}

void DropSteps(GroupPlan& group) {
  group.verdict = Verdict::kRefused;
  group.actions.clear();
  for (Member& member : group.members) {
    if (member.action == MemberAction::kBind) member.action = MemberAction::kNone;
    member.to.clear();
  }
}

}  // namespace

void PlanSteps(const Context& context, Draft& draft) {
  if (!draft.Selected()) {
    if (!draft.plan.refusals.empty()) draft.plan.verdict = Verdict::kRefused;
    return PlanVfs(draft);
  }
  for (size_t i = 0; i < draft.devices.size(); ++i) PlanMember(context, draft, i);
  if (!draft.plan.refusals.empty()) {
    return DropSteps(draft.plan);
  }
  AddSteps(draft);
  draft.plan.verdict = draft.plan.actions.empty() ? Verdict::kBound : Verdict::kBind;
}

void TakeBackSteps(GroupPlan& group, std::vector<Resource>& resources) {
  if (group.verdict != Verdict::kBind) return;
  DropSteps(group);
  const Refusal& why = group.refusals.front();
  for (Resource& resource : resources) {
    for (Unit& unit : resource.units) {
      if (unit.group != group.group || unit.state != UnitState::kToBind) continue;
      unit.state = UnitState::kRefused;
      unit.reason = absl::StrFormat("%s: %s", CodeName(why.code), why.text);
    }
  }
}

}  // namespace vfio_agent
