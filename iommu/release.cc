#include "iommu/release.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "iommu/planning.h"

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
  const bool bound = IsOnVfio(device);
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

// Ours to move: on a vfio driver, or left without one or with an override half-way through a bind.
bool ToBeMoved(const Records& records, const PciDevice& device) {
  if (device.IsBridge()) return false;
  if (IsOnVfio(device)) return true;
  return OriginOf(records, device.address) != nullptr;
}

bool IsUnderway(const Underway& underway, int group) {
  return underway.stuck.contains(group) || underway.at_work.contains(group) ||
         underway.elsewhere.contains(group);
}

void RefuseInUse(const NodeFacts& facts, const Custody& custody, GroupRelease& release) {
  const auto refuse = [&release](Code code, std::string text) {
    release.refusals.push_back({.code = code,
                                .group = release.group,
                                .address = release.members.front(),
                                .text = std::move(text),
                                .remedy = std::string(DefaultRemedy(code))});
    release.actions.clear();
  };
  const auto stuck = custody.underway.stuck.find(release.group);
  if (stuck != custody.underway.stuck.end()) {
    refuse(Code::kUnbindStuck,
           absl::StrFormat("the kernel has not returned from `%s`", stuck->second.command));
  }
  if (const std::string users = WhyHeld(custody, facts, release.group); !users.empty()) {
    refuse(Code::kHeld, absl::StrFormat("group %d is in use by %s", release.group, users));
  }
}

}  // namespace

std::vector<GroupRelease> PlanRelease(const NodeFacts& facts, const Custody& custody,
                                      const std::vector<PciAddress>& wanted) {
  std::map<int, GroupRelease> releases;
  for (const PciAddress& address : wanted) {
    const PciDevice* const device = FindDevice(facts, address);
    if (device != nullptr && device->group) releases[*device->group].group = *device->group;
  }
  for (const PciDevice& device : facts.devices) {
    if (!device.group || !releases.contains(*device.group)) continue;
    if (!ToBeMoved(custody.records, device)) continue;
    GroupRelease& release = releases[*device.group];
    release.members.push_back(device.address);
    AddReturn(facts, custody.records, device, release.actions);
  }
  std::vector<GroupRelease> list;
  for (auto& entry : releases) {
    if (entry.second.members.empty()) continue;
    RefuseInUse(facts, custody, entry.second);
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
    AddReturn(facts, records, *device, actions);
  }
  return actions;
}

std::vector<GroupRelease> PlanRecovery(const NodeFacts& facts, const Custody& custody,
                                       const Plan& plan) {
  std::vector<GroupRelease> list;
  for (const GroupPlan& group : plan.groups) {
    if (group.verdict == Verdict::kBind || group.verdict == Verdict::kBound || !group.group)
      continue;
    if (IsUnderway(custody.underway, *group.group)) continue;
    GroupRelease release{.group = *group.group};
    for (const Member& member : group.members) {
      const auto record = custody.records.find(member.address);
      if (record == custody.records.end() || !record->second.IsUnfinished()) continue;
      release.members.push_back(member.address);
    }
    if (release.members.empty() || !WhyHeld(custody, facts, release.group).empty()) continue;
    release.actions = PlanUndo(facts, custody.records, release.members);
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
      list.push_back(record->second);
      list.back().step = kStepDone;
      list.back().releasing = false;
    }
  }
  return list;
}

}  // namespace vfio_agent
