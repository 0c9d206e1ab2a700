#include "test/fuzz/plan_rules.h"

#include <algorithm>

#include "iommu/policy/naming.h"
#include "test/fuzz/require.h"

namespace vfio_agent {
namespace {

bool IsBound(const GroupPlan& group, const PciAddress& address) {
  return std::ranges::any_of(group.members, [&address](const Member& member) {
    return member.address == address && member.action == MemberAction::kBind;
  });
}

bool ChangesDriver(const Action& action) {
  const std::string_view op = OpName(action);
  return op == "override" || op == "unbind" || op == "probe";
}

// The drivers that the kernel lets share a group with a guest's device: those that do no DMA for
// anybody, of ports as well. A variant driver of any name is told by what it makes: a character
// device below the function's vfio-dev.
bool SparesTheGroup(const PciDevice& device) {
  const std::string& driver = *device.driver;
  return device.vfio_cdev || driver.ends_with("vfio-pci") || driver.ends_with("vfio_pci") ||
         driver == "pci-stub" || driver == "pcieport";
}

void CheckMembers(const NodeFacts& facts, const GroupPlan& group) {
  for (const Member& member : group.members) {
    const PciDevice* const device = FindDevice(facts, member.address);
    Require(device != nullptr, "a member is a device of the node", member.address.ToString());
    Require(device->group == group.group, "a member is in the group that the kernel put it in");
    Require(device->driver == member.driver, "a member has the driver that the kernel says");
    Require((member.role == Role::kBridge) == device->IsBridge(), "a bridge is a bridge");
    Require((member.action == MemberAction::kBind) == !member.to.empty(),
            "what is bound is bound to a driver");
    if (member.action == MemberAction::kBind) {
      Require(group.verdict == Verdict::kBind, "a member is bound only with its group");
      Require(member.role != Role::kBridge && member.role != Role::kForeign,
              "neither bridges nor strangers are bound", member.address.ToString());
    }
  }
  if (!group.group) return;
  const auto members = std::ranges::count(facts.devices, group.group, &PciDevice::group);
  Require(static_cast<size_t>(members) == group.members.size(), "a group has all its members");
}

void CheckVerdict(const NodeFacts& facts, const GroupPlan& group) {
  Require((group.verdict == Verdict::kBind) == !group.actions.empty(),
          "only a group that is to be bound has steps");
  Require((group.verdict == Verdict::kRefused) == !group.refusals.empty(),
          "a group is refused exactly when there is a reason");
  Require((group.verdict == Verdict::kUnselected) <= group.resource.empty(),
          "an unselected group has no resource");
  for (const Refusal& refusal : group.refusals) {
    Require(!IsWarning(refusal.code) && !refusal.text.empty() && !refusal.remedy.empty(),
            "a refusal says why and what to do");
  }
  if (group.verdict != Verdict::kBind && group.verdict != Verdict::kBound) return;
  Require(group.group.has_value(), "a device without a group is not handed out");
  Require(CheckResourceName(group.resource).ok(), "what is handed out has a good name",
          group.resource);
  for (const Member& member : group.members) {
    Require(member.role != Role::kForeign || !member.driver ||
                SparesTheGroup(*FindDevice(facts, member.address)),
            "no group is handed out while a host driver has a member", member.address.ToString());
  }
}

// The steps that change one member's driver: the override, then the unbind where a driver has it,
// then the probe.
std::vector<Action> StepsOf(const Member& member) {
  std::vector<Action> steps = {SetOverride{member.address, member.to}};
  if (member.driver) steps.emplace_back(Unbind{member.address, *member.driver});
  steps.emplace_back(Probe{member.address, member.to});
  return steps;
}

// What a person may paste into a root shell, and what paths are made of.
void CheckWords(const Action& action) {
  const std::string shell = ToShell(action);
  // '?' stands for what is strange in a driver's name; nothing else of a pattern may be there.
  Require(shell.find_first_of("\n\r\t;`$\"'\\&|()*<#~") == std::string::npos,
          "a step is one plain command", shell);
  Require(shell.find("/../") == std::string::npos && shell.find("//") == std::string::npos,
          "a step's path leads where it says", shell);
  if (OpName(action) == "unbind" || OpName(action) == "await-node") return;
  Require(std::ranges::all_of(
              ValueOf(action),
              [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; }),
          "the name of a module or of its driver is a plain word", shell);
}

void CheckSteps(const GroupPlan& group) {
  std::vector<Action> wanted, steps;
  for (const Member& member : group.members) {
    if (member.action == MemberAction::kBind)
      std::ranges::move(StepsOf(member), std::back_inserter(wanted));
  }
  for (const Action& action : group.actions) {
    if (const PciAddress* const address = DeviceOf(action); address != nullptr) {
      Require(IsBound(group, *address), "a step is about a member that is to be bound",
              address->ToString());
    }
    if (ChangesDriver(action)) steps.push_back(action);
    CheckWords(action);
  }
  Require(steps == wanted,
          "every member that is bound gets its driver, in order, and no other does");
  if (group.actions.empty()) return;
  const auto* const last = std::get_if<AwaitNode>(&group.actions.back());
  Require(last != nullptr && last->group == group.group,
          "the last step waits for the group's node");
}

// A physical function stays where it is: it may get virtual functions, and nothing else is done.
void CheckPhysical(const GroupPlan& group) {
  for (const Member& member : group.members) {
    Require(member.action != MemberAction::kBind, "a physical function is not bound",
            member.address.ToString());
  }
  for (const Action& action : group.actions) {
    Require(std::holds_alternative<SetAutoprobe>(action) || std::holds_alternative<SetVfs>(action),
            "a physical function only gets virtual functions", ToShell(action));
    CheckWords(action);
  }
}

void CheckUnits(const Plan& plan) {
  for (const Resource& resource : plan.resources) {
    Require(!resource.units.empty(), "a resource has units", resource.name);
    for (const Unit& unit : resource.units) {
      Require(unit.id == unit.primary.ToString(), "a unit is its primary's address", unit.id);
      Require((unit.state == UnitState::kReady) == unit.reason.empty(),
              "what is not ready says why", unit.id);
      if (unit.state != UnitState::kReady) continue;
      const auto group = std::ranges::find(plan.groups, unit.group, &GroupPlan::group);
      Require(group != plan.groups.end() && group->verdict == Verdict::kBound,
              "only a bound group is ready", unit.id);
    }
  }
}

}  // namespace

void RequireSoundPlan(const NodeFacts& facts, const Plan& plan) {
  size_t members = 0, numbered = 0;
  for (const GroupPlan& group : plan.groups) {
    CheckMembers(facts, group);
    if (IsPhysical(group)) {
      CheckPhysical(group);
    } else {
      CheckVerdict(facts, group);
      CheckSteps(group);
    }
    members += group.group ? group.members.size() : 0;
    numbered += group.group ? 1 : 0;
  }
  const auto grouped = std::ranges::count_if(
      facts.devices, [](const PciDevice& device) { return device.group.has_value(); });
  Require(numbered == facts.groups.size(), "every group is in the plan once");
  Require(members == static_cast<size_t>(grouped), "every device is in the plan once");
  CheckUnits(plan);
}

}  // namespace vfio_agent
