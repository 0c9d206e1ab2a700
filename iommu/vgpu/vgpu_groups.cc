#include "iommu/vgpu/vgpu_groups.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace vfio_agent {
namespace {

// It stays with its driver.
void Keep(GroupPlan& group, const PciAddress& address, Role role) {
  for (Member& member : group.members) {
    if (member.address != address) continue;
    member.role = role;
    member.action = MemberAction::kKeep;
  }
}

}  // namespace

GroupPlan* VgpuGroups::Find(const PciDevice& device) {
  for (GroupPlan& group : plan_.groups) {
    if (device.group && group.group == device.group) return &group;
  }
  return nullptr;
}

void VgpuGroups::NotePhysical(const PciDevice& device) {
  GroupPlan* const group = Find(device);
  if (group == nullptr || group->verdict != Verdict::kUnselected) return;
  Keep(*group, device.address, Role::kPhysical);
}

GroupPlan* VgpuGroups::Take(const PciDevice& device, int type, const std::string& resource) {
  GroupPlan* const group = Find(device);
  if (group == nullptr) return nullptr;
  group->resource = resource;
  group->vgpu_type = absl::StrFormat("%d", type);
  Keep(*group, device.address, Role::kPrimary);
  if (const auto why = WhyNotGiven(context_, device)) Refuse(device, *why);
  return group;
}

void VgpuGroups::TakeAway(const PciDevice& device, const std::string& resource) {
  GroupPlan* const group = Find(device);
  if (group == nullptr || !group->refusals.empty()) return;
  group->resource = resource;
  group->vgpu_type = absl::StrFormat("%d", 0);
  Keep(*group, device.address, Role::kPrimary);
  const bool at_work = context_.custody.underway.at_work.contains(*device.group);
  const auto why = at_work ? std::nullopt : WhyNotWritten(context_, device);
  if (why) return Refuse(device, *why);
  group->verdict = Verdict::kBind;
  group->actions = {SetVgpuType{device.address, 0, ""}};
}

void VgpuGroups::AskOf(int group) {
  const Underway& underway = context_.custody.underway;
  if (underway.at_work.contains(group) || underway.stuck.contains(group)) return;
  std::vector<int>& groups = plan_.question.groups;
  if (std::ranges::count(groups, group) == 0) groups.push_back(group);
}

void VgpuGroups::Warn(const PciDevice& device, Refusal warning) {
  warning.group = device.group;
  warning.address = device.address;
  if (GroupPlan* const group = Find(device)) group->warnings.push_back(warning);
  plan_.warnings.push_back(std::move(warning));
}

void VgpuGroups::Refuse(const PciDevice& device, Refusal refusal) {
  refusal.group = device.group;
  refusal.address = device.address;
  if (refusal.remedy.empty()) refusal.remedy = RemedyFor(refusal.code, &device);
  if (GroupPlan* const group = Find(device)) {
    group->refusals.push_back(refusal);
    group->actions.clear();
    group->verdict = Verdict::kRefused;
  }
  plan_.refusals.push_back(std::move(refusal));
}

}  // namespace vfio_agent
