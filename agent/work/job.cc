#include "agent/work/job.h"

#include <algorithm>
#include <ranges>

#include "absl/strings/str_format.h"
#include "iommu/plan/job_key.h"
#include "iommu/vgpu/vgpu.h"

namespace vfio_agent {
namespace {

std::vector<PciAddress> EndpointsOf(const GroupPlan& group) {
  std::vector<PciAddress> endpoints;
  for (const Member& member : group.members) {
    if (member.role != Role::kBridge) endpoints.push_back(member.address);
  }
  return endpoints;
}

std::string OverrideOf(const Custody& custody, const PciAddress& device) {
  const auto found = custody.inquiry->overrides.find(device);
  if (found == custody.inquiry->overrides.end()) return "";
  const std::string text = found->second.value_or("");
  return text == kNoOverride ? "" : text;
}

Records RecordsOf(const std::vector<PciAddress>& devices, const Records& records) {
  Records list;
  for (const PciAddress& device : devices) {
    const auto found = records.find(device);
    if (found != records.end() && found->second.this_boot) list.insert(*found);
  }
  return list;
}

// It has no VFs now; that and its autoprobe is what is to be put back.
void NoteVfs(const NodeFacts& facts, const SetVfs& making, Job& job) {
  Record& record = job.records[making.device];
  record.vfs = making.count;
  const PciDevice* const device = FindDevice(facts, making.device);
  if (!record.vfs_autoprobe && device != nullptr && device->vfs_autoprobe.known()) {
    record.vfs_autoprobe = device->vfs_autoprobe.value();
  }
}

void NoteVgpu(const SetVgpuType& setting, Job& job) {
  Record& record = job.records[setting.device];
  record.vgpu_type = setting.type;
  record.vgpu_name = setting.name;
}

// A member that stays where it is, with vfio-pci, but was on its way back when that was cut off.
void TakeAgain(const Records& records, const PciAddress& member, Job& job) {
  const auto found = records.find(member);
  if (found == records.end() || !found->second.IsUnfinished()) return;
  job.earlier.insert(*found);
  job.records.insert(*found).first->second.releasing = false;
}

}  // namespace

Rights RightsFrom(const std::vector<Action>& actions, size_t step) {
  const bool loads = std::ranges::any_of(
      actions | std::views::drop(step),
      [](const Action& action) { return std::holds_alternative<LoadModule>(action); });
  return loads ? kLoadRights : kNoRights;
}

Job MakeBindJob(const GroupPlan& group, const NodeFacts& facts, const Custody& custody,
                const std::string& boot_id) {
  if (TakesVgpuAway(group)) {
    GroupRelease release{.group = *group.group, .actions = group.actions};
    release.members = DevicesOf(release.actions);
    return MakeReleaseJob(release, custody.records);
  }
  Job job{.group = *JobKey(group), .kind = JobKind::kBind, .actions = group.actions};
  for (const Refusal& warning : group.warnings) {
    if (!warning.overruled) continue;
    job.overruled.push_back(
        absl::StrFormat("%s %s", CodeName(warning.code), warning.address->ToString()));
  }
  const std::vector<PciAddress> devices = DevicesOf(job.actions);
  job.earlier = RecordsOf(devices, custody.records);
  const std::vector<PciAddress> endpoints = EndpointsOf(group);
  for (const Member& member : group.members) {
    const PciDevice* const device = FindDevice(facts, member.address);
    if (device == nullptr) continue;
    if (!std::ranges::count(devices, member.address)) {
      if (!group.makes_mdevs) TakeAgain(custody.records, member.address, job);
      continue;
    }
    const auto earlier = job.earlier.find(member.address);
    job.records[member.address] =
        MakeRecord(*device, endpoints, OverrideOf(custody, member.address), member.to,
                   earlier == job.earlier.end() ? nullptr : &earlier->second, boot_id);
  }
  for (const Action& action : job.actions) {
    if (const auto* const vfs = std::get_if<SetVfs>(&action)) NoteVfs(facts, *vfs, job);
    if (const auto* const vgpu = std::get_if<SetVgpuType>(&action)) NoteVgpu(*vgpu, job);
  }
  return job;
}

Job MakeReleaseJob(const GroupRelease& release, const Records& records) {
  const Records ours = RecordsOf(release.members, records);
  return {.group = release.group,
          .kind = JobKind::kRelease,
          .actions = release.actions,
          .records = ours,
          .earlier = ours};
}

}  // namespace vfio_agent
