#include "agent/daemon/report.h"

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

std::string Devices(const std::vector<Action>& actions) {
  std::vector<std::string> list;
  for (const Action& action : actions) {
    if (!std::holds_alternative<SetOverride>(action)) continue;
    const std::string address = DeviceOf(action)->ToString();
    if (list.empty() || list.back() != address) list.push_back(address);
  }
  return absl::StrJoin(list, ",");
}

const char* NameOf(const JobEvent& event) {
  const bool bind = event.job.kind == JobKind::kBind;
  if (event.kind != JobEvent::Kind::kFinished) return bind ? "bind_stuck" : "release_stuck";
  if (event.cut_off) return bind ? "bind_returned" : "release_returned";
  if (event.status.ok()) return bind ? "bind_done" : "released";
  return bind ? "bind_failed" : "release_failed";
}

// The driver that the plan takes `device` from or gives it to.
template <typename Step>
std::string DriverIn(const std::vector<Action>& actions, const PciAddress& device) {
  for (const Action& action : actions) {
    const auto* const step = std::get_if<Step>(&action);
    if (step == nullptr || step->device != device) continue;
    if constexpr (std::is_same_v<Step, Unbind>) return step->driver;
    if constexpr (std::is_same_v<Step, Probe>) return step->expect;
  }
  return "";
}

// The failed step: which device, from where to where, the command to try by hand.
void AddStep(const JobEvent& event, Event& line) {
  if (event.done >= event.job.actions.size()) return;
  const Action& action = event.job.actions[event.done];
  if (const PciAddress* address = DeviceOf(action)) {
    line.With("device", address->ToString());
    if (const auto record = event.job.records.find(*address); record != event.job.records.end()) {
      line.With("id", absl::StrFormat("%04x:%04x", record->second.vendor, record->second.device));
    }
    line.With("from", DriverIn<Unbind>(event.job.actions, *address));
    line.With("to", DriverIn<Probe>(event.job.actions, *address));
  }
  line.With("step", absl::StrFormat("%d/%d", event.done + 1, event.job.actions.size()));
  line.With("try", ToShell(action));
}

}  // namespace

std::string RemedyIn(const std::string& text, const std::string& address) {
  const std::optional<Code> code = FindCode(text);
  if (!code) return "";
  std::string remedy = Text(DefaultRemedy(*code));
  constexpr std::string_view kPlace = "<address>";
  const size_t at = remedy.find(kPlace);
  return at == std::string::npos ? remedy : remedy.replace(at, kPlace.size(), address);
}

std::string RemedyOf(const JobEvent& event) {
  return event.remedy.empty() ? Text(DefaultRemedy(event.code)) : event.remedy;
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
  Event event{.level = on ? Level::kInfo : Level::kError, .name = on ? "iommu_on" : "iommu_off"};
  event.With("state", Text(Name(plan.iommu.state)))
      .With("kind", Text(Name(plan.iommu.kind)))
      .With("evidence", absl::StrJoin(plan.iommu.evidence, "; "));
  if (plan.acs_override) event.With("acs_override", "true");
  if (!on) event.With("remedy", Text(DefaultRemedy(Code::kIommuOff)));
  return event;
}

Event GroupSeen(const GroupPlan& group) {
  Event event;
  event.With("group", GroupText(group.group))
      .With("resource", group.resource)
      .With("members", Endpoints(group));
  switch (group.verdict) {
    case Verdict::kBound:
      event.name = "group_ready";
      return event;
    case Verdict::kBind:
      event.name = "group_to_bind";
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

Event GroupGone(const std::string& what) {
  Event event{.level = Level::kWarn, .name = "group_gone"};
  return event.With("what", what).With("remedy", Text(DefaultRemedy(Code::kDeviceGone)));
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

Event JobStarted(const Job& job) {
  Event event{.name = job.kind == JobKind::kBind ? "bind_started" : "release_started"};
  return event.With("group", absl::StrFormat("%d", job.group))
      .With("members", Devices(job.actions))
      .With("steps", absl::StrFormat("%d", job.actions.size()))
      .With("overruled", absl::StrJoin(job.overruled, ","));
}

Event Recovered(const Job& job) {
  std::vector<std::string> devices;
  for (const auto& entry : job.records) devices.push_back(entry.first.ToString());
  Event event{.name = "recovered"};
  return event.With("group", absl::StrFormat("%d", job.group))
      .With("members", absl::StrJoin(devices, ","))
      .With("text", "bound already when the agent was cut off: only the journal did not know");
}

std::string FailureOf(const JobEvent& event) {
  const std::vector<Action>& actions = event.job.actions;
  // By its command: a plan that goes on from half-way counts its steps anew.
  const std::string step = event.done < actions.size() ? ToShell(actions[event.done]) : "";
  return absl::StrFormat("%s %s %s", CodeName(event.code), step, Message(event.status));
}

Event JobEnded(const JobEvent& event, const std::string& drivers_now, const std::string& next) {
  const bool well = event.status.ok() || event.cut_off;
  Event line{.level = well ? Level::kInfo : Level::kError, .name = NameOf(event)};
  line.With("group", absl::StrFormat("%d", event.job.group))
      .With("members", Devices(event.job.actions));
  if (event.cut_off) line.With("now", drivers_now).With("next", next);
  if (!well) {
    AddStep(event, line);
    line.With("code", Text(CodeName(event.code))).With("err", Message(event.status));
    line.With("stack", absl::StrJoin(event.stack, " < "));
    line.With("now", drivers_now).With("remedy", RemedyOf(event)).With("next", next);
  }
  return line.With("took_ms", absl::StrFormat("%d", absl::ToInt64Milliseconds(event.took)));
}

Event ConfigReloaded(const std::string& file) {
  Event event{.name = "config_reloaded"};
  return event.With("config", file);
}

Event ConfigRejected(const std::string& error) {
  Event event{.level = Level::kError, .name = "config_rejected"};
  return event.With("err", error).With("next", "the old configuration stays in force");
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
