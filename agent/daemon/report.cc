#include "agent/daemon/report.h"

#include <cstring>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "agent/version.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

std::string Text(std::string_view view) { return std::string(view); }

std::string GroupText(const std::optional<int>& group) {
  return group ? absl::StrFormat("%d", *group) : "";
}

std::string Endpoints(const GroupPlan& group) {
  std::vector<std::string> list;
  for (const Member& member : group.members) {
    if (member.role != Role::kBridge) list.push_back(member.address.ToString());
  }
  return absl::StrJoin(list, ",");
}

}  // namespace

std::string RemedyFor(Code code, const std::string& address) {
  constexpr std::string_view kPlace = "<address>";
  std::string remedy = Text(DefaultRemedy(code));
  for (size_t at = 0; (at = remedy.find(kPlace, at)) != std::string::npos; at += address.size()) {
    remedy.replace(at, kPlace.size(), address);
  }
  return remedy;
}

std::string RemedyIn(const std::string& text, const std::string& address) {
  const std::optional<Code> code = FindCode(text);
  return code ? RemedyFor(*code, address) : "";
}

std::string ErrnoName(const absl::Status& status) {
  const char* const name = ::strerrorname_np(ErrnoOf(status));
  return ErrnoOf(status) == 0 || name == nullptr ? "" : name;
}

Event AgentStarted(const Session& session) {
  Event event{.name = "agent_started"};
  return event.With("version", std::string(AgentVersion()))
      .With("config", session.config().file_name)
      .With("root", session.tree().root())
      .With("kubelet", session.settings().device_plugin_dir);
}

Event AgentStopping(const std::string& why, const std::string& next) {
  Event event{.name = "agent_stopping"};
  return event.With("why", why).With("next", next);
}

Event ReadFailed(const std::string& error) {
  Event event{.level = Level::kError, .name = "read_failed"};
  return event.With("err", error)
      .With("next",
            "what was offered stays; read again at the next "
            "change or resync");
}

Event Note(const std::string& text) {
  Event event{.level = Level::kWarn, .name = "note"};
  return event.With("text", text);
}

Event SnapshotSkipped(const std::string& what) {
  Event event{.level = Level::kWarn, .name = "snapshot_skipped"};
  return event.With("what", what);
}

Event DeviceOdd(const PciDevice& device) {
  Event event{.level = Level::kWarn, .name = "device_odd"};
  return event.With("device", device.address.ToString())
      .With("err", absl::StrJoin(device.errors, "; "));
}

Event IommuSeen(const Plan& plan) {
  const bool on = plan.iommu.state == IommuState::kOn;
  const bool unsafe = ServesUnsafe(plan);
  const Level level = on ? Level::kInfo : unsafe ? Level::kWarn : Level::kError;
  Event event{.level = level, .name = on ? "iommu_on" : "iommu_off"};
  event.With("state", Text(Name(plan.iommu.state)))
      .With("kind", Text(Name(plan.iommu.kind)))
      .With("evidence", absl::StrJoin(plan.iommu.evidence, "; "));
  if (plan.acs_override) event.With("acs_override", "true");
  if (unsafe) event.With("next", "UNSAFE: served all the same, as resources[].noiommu says");
  if (!on) event.With("remedy", IommuRemedy(plan.iommu));
  return event;
}

Event GroupSeen(const GroupPlan& group) {
  Event event;
  event.With("group", GroupText(group.group))
      .With("resource", group.resource)
      .With("members", Endpoints(group));
  switch (group.verdict) {
    case Verdict::kBound:
      event.name = IsPhysical(group) ? "vfs_ready" : "group_ready";
      return event;
    case Verdict::kBind:
      event.name = IsPhysical(group) ? "vfs_to_make" : "group_to_bind";
      return event;
    case Verdict::kUnselected:
      event.name = "group_left";
      return event;
    case Verdict::kRefused:
      break;
  }
  event.name = "group_refused";
  event.level = Level::kWarn;
  std::vector<std::string> codes, texts, remedies;
  for (const Refusal& refusal : group.refusals) {
    codes.push_back(Text(CodeName(refusal.code)));
    texts.push_back(refusal.text);
    remedies.push_back(refusal.remedy);
  }
  return event.With("code", absl::StrJoin(codes, ","))
      .With("err", absl::StrJoin(texts, "; "))
      .With("remedy", absl::StrJoin(remedies, "; "));
}

Event GroupGone(const std::string& what, const std::optional<PciAddress>& physical) {
  Event event{.level = physical ? Level::kInfo : Level::kWarn, .name = "group_gone"};
  constexpr std::string_view kGroup = "group ";
  if (what.starts_with(kGroup)) event.With("group", what.substr(kGroup.size()));
  event.With("what", what);
  if (!physical) return event.With("remedy", Text(DefaultRemedy(Code::kDeviceGone)));
  const std::string who = physical->ToString();
  return event.With("reason", absl::StrFormat("a virtual function that %s has no more", who));
}

Event UnitSeen(const std::string& resource, const OfferedUnit& unit) {
  Event event{.name = "unit_healthy"};
  if (!unit.healthy) event = {.level = Level::kWarn, .name = "unit_unhealthy"};
  return event.With("resource", resource)
      .With("unit", unit.id)
      .With("group", absl::StrFormat("%d", unit.group))
      .With("reason", unit.reason)
      .With("remedy", RemedyIn(unit.reason, unit.id));
}

Event UnitTaken(const std::string& resource, const OfferedUnit& unit, const std::string& before) {
  const bool free = unit.holder.empty();
  Event event{.name = free ? "unit_free" : "unit_held"};
  return event.With("resource", resource)
      .With("unit", unit.id)
      .With("group", absl::StrFormat("%d", unit.group))
      .With("pod", free ? before : unit.holder);
}

Event PodsUnknown(const std::string& why) {
  Event event{.level = Level::kWarn, .name = "pods_unknown"};
  return event.With("why", why)
      .With("next", "units of groups with several stay with whom they were last seen")
      .With("remedy",
            "see that the kubelet runs and that its pod-resources directory is mounted here");
}

Event PodsKnown() { return {.name = "pods_known"}; }

Event WarningSeen(const Refusal& warning) {
  Event event{.level = Level::kWarn, .name = "warning"};
  event.With("code", Text(CodeName(warning.code))).With("group", GroupText(warning.group));
  if (warning.address) event.With("device", warning.address->ToString());
  return event.With("err", warning.text).With("remedy", warning.remedy);
}

Event AgentWaiting(int holder) {
  Event event{.level = Level::kWarn, .name = "agent_waiting"};
  return event.With("holder", absl::StrFormat("pid %d", holder))
      .With("next", "nothing is touched until it has ended");
}

Event JournalSetAside(const Journal::Unreadable& file, const absl::Status& status) {
  Event event{.level = Level::kError, .name = "journal_set_aside"};
  return event.With("file", file.path)
      .With("err", status.ok() ? file.why : file.why + "; " + Message(status))
      .With("next", "what it spoke of counts as adopted: served, and given back only by name");
}

Event Adopted(const GroupPlan& group) {
  Event event{.name = "adopted"};
  return event.With("group", GroupText(group.group))
      .With("members", Endpoints(group))
      .With("next", "served; given back to a host driver only if `release` names it");
}

Event UeventsUnavailable(const std::string& error) {
  Event event{.level = Level::kWarn, .name = "uevents_unavailable"};
  return event.With("err", error).With("next", "changes are seen at the resync only");
}

Event CdiFailed(const std::string& problem) {
  Event event{.level = Level::kError, .name = "cdi_failed"};
  return event.With("err", problem)
      .With("next", "served all the same, without this spec; tried again with the next picture")
      .With("remedy",
            "see that cdi.dir can be written to (in a pod: a mount of the host's), or give the "
            "resource a name that CDI takes, in resources[].name or aliases");
}

Event NfdFailed(const std::string& problem) {
  Event event{.level = Level::kError, .name = "nfd_failed"};
  return event.With("err", problem)
      .With("next", "served all the same; the node's labels are old, and go when they expire")
      .With("remedy", "see that nfd.dir can be written to (in a pod: a mount of the host's)");
}

}  // namespace vfio_agent
