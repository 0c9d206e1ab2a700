#include <algorithm>

#include "absl/strings/str_format.h"
#include "iommu/plan/planning.h"

namespace vfio_agent {
namespace {

constexpr char kOwnDriver[] = "give it back to its own driver, which alone can make them";

// Member `i` is a physical function that is to have this many VFs.
std::optional<int> WantedVfs(const Draft& draft, size_t i) {
  const ResourceRule* const maker = draft.Selected() ? nullptr : draft.makers[i];
  return maker == nullptr ? std::nullopt : maker->sriov->vfs;
}

// VFs that no IOMMU translates for cannot be given away.
void RequirePfGroup(const Context& context, Draft& draft, const PciDevice& device) {
  if (device.group) return;
  const IommuFacts& iommu = context.facts.iommu;
  const bool off = iommu.state == IommuState::kOff;
  Refuse(draft, off ? Code::kIommuOff : Code::kNoIommuGroup, &device,
         absl::StrFormat("%s, so virtual functions of %s could not be given away",
                         off ? "no IOMMU is on" : "there is no IOMMU group", Spell(device)),
         off ? IommuRemedy(iommu) : NoGroupRemedy(iommu, device));
}

// The kernel changes the number only from 0 and to 0, and that takes the VFs from whoever has them.
void RefuseOtherNumber(const Context& context, Draft& draft, const PciDevice& device, int wanted) {
  Refuse(draft, Code::kPfHasVfs, &device,
         absl::StrFormat("%s has %d virtual functions enabled, and sriov.vfs is %d: the number is "
                         "changed from 0 only, and those that are there stay in service",
                         Spell(device), device.virtfns.size(), wanted),
         OtherNumberRemedy(context.custody, device, wanted));
}

void RequireCapability(Draft& draft, const PciDevice& device, int wanted) {
  const int total = device.sriov_total_vfs.value_or(0);
  if (wanted <= total) return;
  if (total > 0) {
    return Refuse(
        draft, Code::kProbeRefused, &device,
        absl::StrFormat("%s can have %d virtual functions (sriov_totalvfs), and sriov.vfs "
                        "is %d",
                        Spell(device), total, wanted),
        absl::StrFormat("set vfs: %d or less, or see whether the card's firmware can be "
                        "set to more",
                        total));
  }
  Refuse(draft, Code::kProbeRefused, &device,
         absl::StrFormat("%s has no SR-IOV (sriov_totalvfs), so it can have no virtual functions",
                         Spell(device)),
         "switch SR-IOV on in the machine's and the card's firmware, or take the device out of "
         "this select");
}

// Only the physical function's own driver can make VFs.
void RequireOwnDriver(Draft& draft, const PciDevice& device) {
  if (device.driver && !IsHarmlessDriver(*device.driver)) return;
  Refuse(draft, Code::kProbeRefused, &device,
         absl::StrFormat("%s has no driver of the host that could make virtual functions",
                         Spell(device)),
         kOwnDriver);
}

void RefuseDisplay(const Context& context, Draft& draft, const PciDevice& device) {
  if (device.boot_vga.is(true)) {
    RefuseUnlessOverruled(context, draft, Code::kBootDisplay, device,
                          absl::StrFormat("%s is the boot display (boot_vga)", Spell(device)));
  }
  const auto held = context.facts.frame_buffers.find(device.address);
  if (held == context.facts.frame_buffers.end()) return;
  RefuseUnlessOverruled(context, draft, Code::kInUseDisplay, device,
                        absl::StrFormat("%s %s", Spell(device), held->second.text),
                        held->second.remedy);
}

}  // namespace

bool IsPhysical(const GroupPlan& group) {
  return std::ranges::count(group.members, Role::kPhysical, &Member::role) > 0;
}

std::vector<std::string> TellVfsToMake(const GroupPlan& group) {
  std::vector<std::string> sentences;
  for (const Action& action : group.actions) {
    const SetVfs* const set = std::get_if<SetVfs>(&action);
    if (set == nullptr) continue;
    sentences.push_back(absl::StrFormat("%d virtual function%s of %s %s to be made%s", set->count,
                                        set->count == 1 ? "" : "s", set->device.ToString(),
                                        set->count == 1 ? "is" : "are",
                                        group.resource.empty() ? "" : " for " + group.resource));
  }
  return sentences;
}

std::vector<std::string> TellVfsToMake(const Plan& plan) {
  std::vector<std::string> all;
  for (const GroupPlan& group : plan.groups) {
    std::ranges::move(TellVfsToMake(group), std::back_inserter(all));
  }
  return all;
}

bool MakesVfs(const Draft& draft, size_t i) {
  return WantedVfs(draft, i) && draft.devices[i]->virtfns.empty();
}

void ApplyVfRules(const Context& context, Draft& draft) {
  for (size_t i = 0; i < draft.devices.size(); ++i) {
    const PciDevice& device = *draft.devices[i];
    const std::optional<int> wanted = WantedVfs(draft, i);
    if (!wanted) continue;
    draft.plan.resource = draft.makers[i]->name;
    RequirePfGroup(context, draft, device);
    if (!MakesVfs(draft, i)) {
      if (static_cast<int>(device.virtfns.size()) != *wanted)
        RefuseOtherNumber(context, draft, device, *wanted);
      continue;
    }
    RequireCapability(draft, device, *wanted);
    RequireOwnDriver(draft, device);
    RefuseDisplay(context, draft, device);
  }
}

void PlanVfs(Draft& draft) {
  for (size_t i = 0; i < draft.devices.size(); ++i) {
    Member& member = draft.plan.members[i];
    if (member.role == Role::kPhysical) member.action = MemberAction::kKeep;
    const std::optional<int> wanted = WantedVfs(draft, i);
    if (!wanted || !draft.plan.refusals.empty()) continue;
    draft.plan.verdict = draft.plan.actions.empty() ? Verdict::kBound : Verdict::kBind;
    if (!MakesVfs(draft, i)) continue;
    // Else a driver of the host would take each of them as it appears.
    draft.plan.actions.push_back(SetAutoprobe{member.address, false});
    draft.plan.actions.push_back(SetVfs{member.address, *wanted});
    draft.plan.verdict = Verdict::kBind;
  }
}

}  // namespace vfio_agent
