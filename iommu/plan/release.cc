#include "iommu/plan/release.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "iommu/plan/planning.h"
#include "iommu/vgpu/vgpu.h"

namespace vfio_agent {
namespace {

// The record that says where `device` came from, or null: one of an earlier boot does not.
const Record* OriginOf(const Records& records, const PciAddress& device) {
  const auto found = records.find(device);
  return found != records.end() && found->second.this_boot ? &found->second : nullptr;
}

// With the override on the old driver the kernel takes just that one back, even where two would
// fit (nouveau and nvidia); afterwards the override becomes what it was.
void AddReturn(const NodeFacts& facts, const Records& records, const PciDevice& device,
               std::vector<Action>& actions) {
  const Record* const record = OriginOf(records, device.address);
  const std::string driver = record != nullptr ? record->driver : "";
  const std::string before = record != nullptr ? record->driver_override : "";
  const bool to_driver = !driver.empty() && facts.drivers.contains(driver);
  // A vGPU is on its vendor's driver, which it keeps, and has a cdev all the same.
  const bool bound = IsOnVfio(device) && !MayBeVgpu(facts, device.address);
  if (device.driver && !bound) {
    actions.push_back(SetOverride{device.address, before});
  } else {
    const std::string way = to_driver ? driver : "";
    actions.push_back(SetOverride{device.address, way});
    if (bound) actions.push_back(Unbind{device.address, *device.driver});
    // What had no driver gets none back.
    if (record == nullptr || !driver.empty()) actions.push_back(Probe{device.address, way});
    if (way != before) actions.push_back(SetOverride{device.address, before});
  }
  if (record != nullptr && record->d3cold_allowed == true) {
    actions.push_back(SetD3cold{device.address, true});
  }
}

// Another number is somebody else's: the kernel changes it only from 0, so ours are gone.
bool HasItsMadeVfs(const Record& record, const PciDevice& device) {
  return HasMadeVfs(record) && std::cmp_equal(device.virtfns.size(), *record.vfs);
}

// The VFs of `device` that go when it is put back.
std::vector<const PciDevice*> MadeVfs(const NodeFacts& facts, const Records& records,
                                      const PciDevice& device) {
  std::vector<const PciDevice*> vfs;
  const Record* const record = OriginOf(records, device.address);
  if (record == nullptr || !HasItsMadeVfs(*record, device)) return vfs;
  for (const PciAddress& address : device.virtfns) {
    if (const PciDevice* const vf = FindDevice(facts, address)) vfs.push_back(vf);
  }
  return vfs;
}

// The kernel would unbind the VFs by itself; one by one it is told which of them it waits for.
void AddVfsReturn(const NodeFacts& facts, const Records& records, const PciDevice& device,
                  std::vector<Action>& actions) {
  const Record& record = *OriginOf(records, device.address);
  for (const PciDevice* vf : MadeVfs(facts, records, device)) {
    if (vf->driver) actions.push_back(Unbind{vf->address, *vf->driver});
  }
  if (HasItsMadeVfs(record, device)) actions.push_back(SetVfs{device.address, 0});
  if (record.vfs_autoprobe == true) actions.push_back(SetAutoprobe{device.address, true});
}

// What puts `device` back.
void AddWayBack(const NodeFacts& facts, const Records& records, const PciDevice& device,
                std::vector<Action>& actions) {
  const Record* const record = OriginOf(records, device.address);
  if (record != nullptr && record->vfs) return AddVfsReturn(facts, records, device, actions);
  if (record != nullptr && record->vgpu_type) return AddVgpuReturn(facts, *record, actions);
  AddReturn(facts, records, device, actions);
}

// Ours to move: on a vfio driver, or left without one or with an override half-way through a bind.
// A vGPU that somebody else has made keeps its type.
bool ToBeMoved(const NodeFacts& facts, const Records& records, const PciDevice& device) {
  if (device.IsBridge()) return false;
  if (MayBeVgpu(facts, device.address)) return OriginOf(records, device.address) != nullptr;
  if (IsOnVfio(device)) return true;
  return OriginOf(records, device.address) != nullptr;
}

bool IsUnderway(const Underway& underway, int group) {
  return underway.stuck.contains(group) || underway.at_work.contains(group) ||
         underway.elsewhere.contains(group);
}

void RefuseInUse(const NodeFacts& facts, const Custody& custody, int group, GroupRelease& release) {
  const auto refuse = [&release](Code code, std::string text) {
    release.refusals.push_back({.code = code,
                                .group = release.group,
                                .address = release.members.front(),
                                .text = std::move(text),
                                .remedy = std::string(DefaultRemedy(code))});
    release.actions.clear();
  };
  const auto stuck = custody.underway.stuck.find(group);
  if (stuck != custody.underway.stuck.end()) {
    refuse(Code::kUnbindStuck,
           absl::StrFormat("the kernel has not returned from `%s`", stuck->second.command));
  }
  if (const std::string users = WhyHeld(custody, facts, group); !users.empty()) {
    refuse(Code::kHeld, absl::StrFormat("group %d is in use by %s", group, users));
  }
}

// A VF that a host driver has meanwhile may carry the host's network or its disks.
void RefuseHostVfs(const std::vector<const PciDevice*>& vfs, GroupRelease& release) {
  for (const PciDevice* vf : vfs) {
    if (!vf->driver || IsOnVfio(*vf)) continue;
    release.refusals.push_back(
        {.code = Code::kDriverChanged,
         .group = release.group,
         .address = vf->address,
         .text = absl::StrFormat("%s is a virtual function that would be removed, and a driver of "
                                 "the host has it",
                                 Spell(*vf)),
         .remedy = absl::StrFormat("echo %s > /sys/bus/pci/drivers/%s/unbind, if nothing uses it",
                                   vf->address.ToString(), *vf->driver)});
    release.actions.clear();
  }
}

// With its physical function goes what was made of it, so that one plan has all of it.
void AddMember(const NodeFacts& facts, const Custody& custody, const PciDevice& device,
               GroupRelease& release) {
  release.members.push_back(device.address);
  AddWayBack(facts, custody.records, device, release.actions);
  const std::vector<const PciDevice*> vfs = MadeVfs(facts, custody.records, device);
  for (const PciDevice* vf : vfs) {
    release.members.push_back(vf->address);
    if (vf->group && *vf->group != release.group) release.vf_groups.push_back(*vf->group);
  }
  RefuseHostVfs(vfs, release);
}

// Of it, or of a VF that would go with it.
bool IsBusy(const NodeFacts& facts, const Custody& custody, const GroupRelease& release) {
  return !WhyHeld(custody, facts, release.group).empty() ||
         std::ranges::any_of(release.vf_groups, [&](int group) {
           return IsUnderway(custody.underway, group) || !WhyHeld(custody, facts, group).empty();
         });
}

// Its physical function is put back in the same go.
bool GoesWithPf(const NodeFacts& facts, const Records& records, const PciDevice& device,
                const std::map<int, GroupRelease>& releases) {
  const PciDevice* const physical = device.physfn ? FindDevice(facts, *device.physfn) : nullptr;
  return physical != nullptr && physical->group && releases.contains(*physical->group) &&
         !MadeVfs(facts, records, *physical).empty();
}

// The kernel shows what the record was to come to. VFs of the wanted number whose making had not
// begun are somebody else's, and so is a vGPU type; and of a group that makes mediated devices no
// function is a guest's.
bool IsCarriedOut(const GroupPlan& group, const Record& record) {
  return group.verdict == Verdict::kBound && !group.makes_mdevs &&
         (!record.vfs || HasMadeVfs(record)) && (!record.vgpu_type || HasSetVgpu(record));
}

}  // namespace

std::vector<PciAddress> WithVfs(const NodeFacts& facts, const Records& records,
                                std::vector<PciAddress> wanted) {
  const auto has = [&wanted](const PciAddress& address) {
    return std::ranges::count(wanted, address) > 0;
  };
  for (const PciDevice& device : facts.devices) {
    if (MadeVfs(facts, records, device).empty()) continue;
    if (has(device.address)) {
      wanted.insert(wanted.end(), device.virtfns.begin(), device.virtfns.end());
    } else if (std::ranges::all_of(device.virtfns, has)) {
      wanted.push_back(device.address);
    }
  }
  return wanted;
}

std::vector<GroupRelease> PlanRelease(const NodeFacts& facts, const Custody& custody,
                                      const std::vector<PciAddress>& wanted) {
  std::map<int, GroupRelease> releases;
  for (const PciAddress& address : wanted) {
    const PciDevice* const device = FindDevice(facts, address);
    if (device != nullptr && device->group) releases[*device->group].group = *device->group;
  }
  for (const PciDevice& device : facts.devices) {
    if (!device.group || !releases.contains(*device.group)) continue;
    if (!ToBeMoved(facts, custody.records, device)) continue;
    // Of a group that is ours in part the rest is whose it was, unless it is named as well.
    const bool named = std::ranges::count(wanted, device.address) > 0;
    if (!named && OriginOf(custody.records, device.address) == nullptr) continue;
    if (GoesWithPf(facts, custody.records, device, releases)) continue;
    AddMember(facts, custody, device, releases[*device.group]);
  }
  std::vector<GroupRelease> list;
  for (auto& entry : releases) {
    if (entry.second.members.empty()) continue;
    RefuseInUse(facts, custody, entry.first, entry.second);
    for (const int group : entry.second.vf_groups) RefuseInUse(facts, custody, group, entry.second);
    list.push_back(std::move(entry.second));
  }
  return list;
}

std::vector<Action> PlanUndo(const NodeFacts& facts, const Records& records,
                             const std::vector<PciAddress>& moved) {
  std::vector<Action> actions;
  for (const PciAddress& address : moved) {
    const PciDevice* const device = FindDevice(facts, address);
    if (device == nullptr || OriginOf(records, address) == nullptr) continue;
    AddWayBack(facts, records, *device, actions);
  }
  return actions;
}

std::vector<GroupRelease> PlanRecovery(const NodeFacts& facts, const Custody& custody,
                                       const Plan& plan) {
  std::vector<GroupRelease> list;
  for (const GroupPlan& group : plan.groups) {
    if (group.verdict == Verdict::kBind || !group.group) continue;
    if (IsUnderway(custody.underway, *group.group)) continue;
    GroupRelease release{.group = *group.group};
    for (const Member& member : group.members) {
      const auto record = custody.records.find(member.address);
      if (record == custody.records.end() || !record->second.IsUnfinished()) continue;
      if (IsCarriedOut(group, record->second)) continue;
      AddMember(facts, custody, *FindDevice(facts, member.address), release);
    }
    if (release.members.empty() || !release.refusals.empty()) continue;
    if (IsBusy(facts, custody, release)) continue;
    list.push_back(std::move(release));
  }
  return list;
}

std::vector<Record> FinishedRecords(const Records& records, const Plan& plan) {
  std::vector<Record> list;
  for (const GroupPlan& group : plan.groups) {
    if (group.verdict != Verdict::kBound) continue;
    for (const Member& member : group.members) {
      const auto record = records.find(member.address);
      if (record == records.end() || !record->second.IsUnfinished()) continue;
      if (!IsCarriedOut(group, record->second)) continue;
      list.push_back(record->second);
      list.back().step = kStepDone;
      list.back().releasing = false;
    }
  }
  return list;
}

}  // namespace vfio_agent
