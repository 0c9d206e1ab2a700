#include "agent/daemon/transitions.h"

#include <algorithm>
#include <functional>

#include "absl/strings/str_format.h"
#include "agent/daemon/report.h"

namespace vfio_agent {
namespace {

constexpr char kGroupKey[] = "group ";
constexpr char kDeviceKey[] = "device ";
constexpr char kPodsKey[] = "pods";

std::string KeyOf(const GroupPlan& group) {
  if (group.group) return absl::StrFormat("%s%d", kGroupKey, *group.group);
  return kDeviceKey + group.members.front().address.ToString();
}

// Of a group whose endpoints are virtual functions: the physical function of one.
std::optional<PciAddress> PhysicalOf(const NodeFacts& facts, const GroupPlan& group) {
  std::optional<PciAddress> physical;
  for (const Member& member : group.members) {
    const PciDevice* const device = FindDevice(facts, member.address);
    if (member.role == Role::kBridge || device == nullptr) continue;
    if (!device->physfn) return std::nullopt;
    physical = device->physfn;
  }
  return physical;
}

// Bound, and not by this agent: no record of this boot claims any of it.
bool IsAdopted(const GroupPlan& group, const Records& records) {
  if (group.makes_mdevs) return false;
  return std::ranges::none_of(group.members, [&records](const Member& member) {
    if (member.role == Role::kPhysical) return true;  // its driver is the host's own
    const auto record = records.find(member.address);
    return record != records.end() && record->second.this_boot;
  });
}

}  // namespace

bool Transitions::IsNew(const std::string& key, const Event& event) {
  const size_t line = std::hash<std::string>()(ToText(event));
  const auto [entry, fresh] = last_.try_emplace(key, line);
  if (!fresh && entry->second == line) return false;
  entry->second = line;
  return true;
}

void Transitions::AddGone(const NodeFacts& facts, const std::set<std::string>& present,
                          std::vector<Event>& events) {
  std::erase_if(last_, [&](const auto& entry) {
    const std::string& key = entry.first;
    const bool group = key.starts_with(kGroupKey) || key.starts_with(kDeviceKey);
    if (!group || present.contains(key)) return false;
    const auto physical = physical_.find(key);
    const bool made = physical != physical_.end() && FindDevice(facts, physical->second) != nullptr;
    events.push_back(GroupGone(key, made ? std::optional(physical->second) : std::nullopt));
    return true;
  });
  std::erase_if(physical_, [&](const auto& entry) { return !present.contains(entry.first); });
}

std::vector<Event> Transitions::Compare(const Picture& picture,
                                        const std::vector<std::string>& notes) {
  std::vector<Event> events;
  const auto add = [&](const std::string& key, const Event& event) {
    if (IsNew(key, event)) events.push_back(event);
  };
  add("iommu", IommuSeen(picture.plan));
  for (const std::string& note : notes) add("note " + note, Note(note));
  for (const std::string& skipped : picture.facts.skipped) {
    add("skipped " + skipped, SnapshotSkipped(skipped));
  }
  for (const PciDevice& device : picture.facts.devices) {
    if (!device.errors.empty()) add("odd " + device.address.ToString(), DeviceOdd(device));
  }
  const std::string silent = picture.custody.tenancy ? picture.custody.tenancy->silent : "";
  if (!silent.empty()) add(kPodsKey, PodsUnknown(silent));
  if (silent.empty() && last_.erase(kPodsKey) > 0) events.push_back(PodsKnown());
  std::set<std::string> present;
  for (const GroupPlan& group : picture.plan.groups) {
    const std::string key = KeyOf(group);
    present.insert(key);
    // What nobody selected is told only when it was selected before.
    if (group.verdict == Verdict::kUnselected && !last_.contains(key)) continue;
    add(key, GroupSeen(group));
    if (const auto physical = PhysicalOf(picture.facts, group)) physical_[key] = *physical;
    if (group.verdict == Verdict::kBound && IsAdopted(group, picture.custody.records)) {
      add("adopted " + key, Adopted(group));
    }
  }
  AddGone(picture.facts, present, events);
  for (const Refusal& warning : picture.plan.warnings) {
    add("warning " + warning.text, WarningSeen(warning));
  }
  return events;
}

std::vector<Event> Transitions::CompareOffers(const std::vector<Offer>& before,
                                              const std::vector<Offer>& now) {
  std::map<std::string_view, const OfferedUnit*> known;
  for (const Offer& offer : before) {
    for (const OfferedUnit& unit : offer.units) known[unit.id] = &unit;
  }
  std::vector<Event> events;
  for (const Offer& offer : now) {
    for (const OfferedUnit& unit : offer.units) {
      const auto old = known.find(unit.id);
      const std::string holder = old == known.end() ? "" : old->second->holder;
      if (unit.holder != holder) events.push_back(UnitTaken(offer.resource, unit, holder));
      const bool was_healthy = old == known.end() || old->second->healthy;
      if (unit.healthy ? was_healthy : !was_healthy && old->second->reason == unit.reason) continue;
      events.push_back(UnitSeen(offer.resource, unit));
    }
  }
  return events;
}

bool Transitions::IsNews(const PluginEvent& event) {
  const std::string key = "register " + event.resource;
  if (event.kind == PluginEvent::Kind::kRegistered) last_.erase(key);
  return event.kind != PluginEvent::Kind::kRegisterFailed || IsNew(key, PluginSeen(event));
}

}  // namespace vfio_agent
