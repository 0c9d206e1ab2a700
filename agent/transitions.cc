#include "agent/transitions.h"

#include <functional>

#include "absl/strings/str_format.h"
#include "agent/report.h"

namespace vfio_agent {
namespace {

std::string KeyOf(const GroupPlan& group) {
  if (group.group) return absl::StrFormat("group %d", *group.group);
  return "device " + group.members.front().address.ToString();
}

}  // namespace

bool Transitions::IsNew(const std::string& key, const Event& event) {
  const size_t line = std::hash<std::string>()(ToText(event));
  const auto [entry, fresh] = last_.try_emplace(key, line);
  if (!fresh && entry->second == line) return false;
  entry->second = line;
  return true;
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
  for (const GroupPlan& group : picture.plan.groups) {
    const std::string key = KeyOf(group);
    // What nobody selected is told only when it was selected before.
    if (group.verdict == Verdict::kUnselected && !last_.contains(key)) continue;
    add(key, GroupSeen(group));
  }
  for (const Refusal& warning : picture.plan.warnings) {
    add("warning " + warning.text, WarningSeen(warning));
  }
  return events;
}

}  // namespace vfio_agent
