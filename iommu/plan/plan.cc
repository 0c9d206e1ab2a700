#include "iommu/plan/plan.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "iommu/bundle/bundle.h"
#include "iommu/bundle/egm.h"
#include "iommu/bundle/partitions.h"
#include "iommu/isolation/isolation.h"
#include "iommu/mdev/mdev.h"
#include "iommu/plan/planning.h"
#include "iommu/policy/preset.h"
#include "iommu/vgpu/vgpu.h"

namespace vfio_agent {
namespace {

Refusal MakeAcsWarning(const NodeFacts& facts, const Merge& merge) {
  const PciDevice* const device = FindDevice(facts, merge.device);
  const PciDevice* const with = FindDevice(facts, merge.with);
  const bool asked = facts.iommu.acs_override_parameter;
  return {.code = Code::kAcsOverride,
          .group = device->group,
          .address = merge.device,
          .text = absl::StrFormat(
              "the kernel keeps %s (group %d) apart from %s (group %d), but %s %s: %s",
              device->address.ToString(), *device->group, with->address.ToString(), *with->group,
              merge.culprit.ToString(), Describe(merge.acs),
              asked ? "pcie_acs_override is on the kernel command line"
                    : "an ACS override patch, or a quirk of the kernel that this program does "
                      "not know"),
          .remedy = std::string(DefaultRemedy(Code::kAcsOverride))};
}

// Where the kernel's groups are finer than the hardware allows, guests can reach each other.
void WarnFinerGroups(const NodeFacts& facts, std::vector<Draft>& drafts, Plan& plan) {
  const std::vector<Merge> finer = FindFinerGroups(facts, ComputeGrouping(facts));
  plan.acs_override = facts.iommu.acs_override_parameter || !finer.empty();
  for (const Merge& merge : finer) {
    Refusal warning = MakeAcsWarning(facts, merge);
    for (Draft& draft : drafts) {
      if (draft.plan.group == warning.group) draft.plan.warnings.push_back(warning);
    }
  }
}

// What was cut off at a physical function is put back with its VFs, which guests may have.
void AskOfVfs(const std::vector<Draft>& drafts, const Custody& custody, Question& question) {
  for (const Draft& draft : drafts) {
    for (const PciDevice* device : draft.devices) {
      if (!device->physfn || !draft.plan.group) continue;
      const auto record = custody.records.find(*device->physfn);
      if (record == custody.records.end() || !record->second.vfs ||
          !record->second.IsUnfinished() ||
          std::ranges::count(question.groups, *draft.plan.group) > 0) {
        continue;
      }
      question.groups.push_back(*draft.plan.group);
    }
  }
}

// Everything that binding the selected groups, or putting back what was cut off, would touch.
// Not what is underway: even looking at that can block.
Question Ask(const std::vector<Draft>& drafts, const Custody& custody) {
  Question question;
  const Records& records = custody.records;
  for (const Draft& draft : drafts) {
    if (!draft.plan.group || custody.underway.at_work.contains(*draft.plan.group) ||
        custody.underway.stuck.contains(*draft.plan.group)) {
      continue;
    }
    bool touched = false;
    for (size_t i = 0; i < draft.devices.size(); ++i) {
      const PciDevice& device = *draft.devices[i];
      const auto record = records.find(device.address);
      touched = touched || (record != records.end() && record->second.IsUnfinished());
      if (MakesVfs(draft, i)) {
        touched = true;
        question.unbound.push_back(device.address);
      }
      if (!draft.Selected() || !WillBind(draft, i)) continue;
      touched = true;
      question.overridden.push_back(device.address);
      if (device.driver) question.unbound.push_back(device.address);
    }
    if (touched) question.groups.push_back(*draft.plan.group);
  }
  AskOfVfs(drafts, custody, question);
  return question;
}

Custody WithParts(const Custody& custody, const Parts& parts) {
  Custody with = custody;
  AddParts(parts, with.given);
  return with;
}

}  // namespace

Policy DefaultPolicy() {
  ResourceRule nvidia = RuleOf(*FindPreset("nvidia"));
  nvidia.preset.clear();  // nobody asked for it
  return {.resources = {nvidia}};
}

Plan MakePlan(const NodeFacts& facts, const Policy& policy, const ModelNames& names,
              const Custody& custody) {
  const Context context{facts, policy, names, custody};
  Plan plan{.iommu = facts.iommu};
  std::vector<Draft> drafts = DraftGroups(context);
  for (Draft& draft : drafts) ApplyRules(context, draft);
  const Parts parts = PartsOf(drafts, policy, facts);
  const Custody with_parts = parts.empty() ? Custody{} : WithParts(custody, parts);
  const Context guarded{facts, policy, names, parts.empty() ? custody : with_parts};
  for (Draft& draft : drafts) ApplyGuards(guarded, draft);
  RefuseBadNames(drafts);
  RefuseBrokenBundles(drafts, context);
  plan.question = Ask(drafts, custody);
  for (Draft& draft : drafts) PlanSteps(context, draft);
  WarnFinerGroups(facts, drafts, plan);
  plan.resources = MakeResources(drafts, context);
  for (Draft& draft : drafts) {
    const auto append = [](const std::vector<Refusal>& from, std::vector<Refusal>& to) {
      to.insert(to.end(), from.begin(), from.end());
    };
    append(draft.plan.refusals, plan.refusals);
    append(draft.plan.warnings, plan.warnings);
    plan.groups.push_back(std::move(draft.plan));
  }
  PlanMdevs(context, plan);
  PlanVgpus(context, plan);
  WarnPartitions(plan);
  plan.egm = ShareEgm(facts.egm, plan.resources);
  return plan;
}

std::string_view Name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kBind:
      return "bind";
    case Verdict::kBound:
      return "bound";
    case Verdict::kRefused:
      return "refused";
    case Verdict::kUnselected:
      return "unselected";
  }
  return "";
}

std::string_view Name(Role role) {
  switch (role) {
    case Role::kPrimary:
      return "primary";
    case Role::kCompanion:
      return "companion";
    case Role::kAllowed:
      return "allowed";
    case Role::kForeign:
      return "foreign";
    case Role::kBridge:
      return "bridge";
    case Role::kPhysical:
      return "physical";
  }
  return "";
}

std::string_view Name(MemberAction action) {
  switch (action) {
    case MemberAction::kBind:
      return "bind";
    case MemberAction::kKeep:
      return "keep";
    case MemberAction::kNone:
      return "none";
  }
  return "";
}

std::string_view Name(UnitState state) {
  switch (state) {
    case UnitState::kToBind:
      return "to-bind";
    case UnitState::kReady:
      return "ready";
    case UnitState::kHeld:
      return "held";
    case UnitState::kWithheld:
      return "withheld";
    case UnitState::kUnhealthy:
      return "unhealthy";
    case UnitState::kRefused:
      return "refused";
  }
  return "";
}

std::string_view Name(IommuState state) {
  switch (state) {
    case IommuState::kOn:
      return "on";
    case IommuState::kOff:
      return "off";
    case IommuState::kNoIommu:
      return "noiommu";
    case IommuState::kUnknown:
      return "unknown";
  }
  return "";
}

std::string_view Name(Serve serve) { return serve == Serve::kDra ? "dra" : "device-plugin"; }

std::string_view Name(IommuKind kind) {
  switch (kind) {
    case IommuKind::kIntel:
      return "intel";
    case IommuKind::kAmd:
      return "amd";
    case IommuKind::kArmSmmu:
      return "arm-smmu";
    case IommuKind::kVirtio:
      return "virtio";
    case IommuKind::kOther:
      return "other";
    case IommuKind::kNone:
      return "none";
  }
  return "";
}

}  // namespace vfio_agent
