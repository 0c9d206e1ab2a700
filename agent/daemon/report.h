// Report: one function for each event of the log, a closed list; OPERATING.md has a section for
// each.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/daemon/event.h"
#include "agent/daemon/plan_change.h"
#include "agent/privileges/privileges.h"
#include "agent/session.h"
#include "agent/work/jobs.h"
#include "deviceplugin/kubelet/plugin_event.h"
#include "deviceplugin/offer/offer.h"
#include "deviceplugin/status/agent_status.h"

namespace vfio_agent {

Event AgentStarted(const Session& session);
// privileges_missing. `lacks`: one at least.
Event PrivilegesMissing(const std::vector<Lack>& lacks);
Event AgentStopping(const std::string& why, const std::string& next);
Event ReadFailed(const std::string& error);      // read_failed
Event Note(const std::string& text);             // note
Event SnapshotSkipped(const std::string& what);  // snapshot_skipped
Event DeviceOdd(const PciDevice& device);        // device_odd
Event IommuSeen(const Plan& plan);               // iommu_on, iommu_off
Event GroupSeen(const GroupPlan& group);         // group_ready, group_refused, …
// group_gone; `physical` where it was of virtual functions and this one is still there.
Event GroupGone(const std::string& what, const std::optional<PciAddress>& physical);
// unit_healthy, unit_unhealthy
Event UnitSeen(const std::string& resource, const OfferedUnit& unit);
// unit_held, unit_free. `before`: who had it.
Event UnitTaken(const std::string& resource, const OfferedUnit& unit, const std::string& before);
Event PodsUnknown(const std::string& why);  // pods_unknown
Event PodsKnown();                          // pods_known
Event WarningSeen(const Refusal& warning);  // warning
Event AgentWaiting(int holder);             // agent_waiting
Event JournalSetAside(const Journal::Unreadable& file, const absl::Status& status);
Event Adopted(const GroupPlan& group);  // adopted
Event JobStarted(const Job& job);       // bind_started, release_started
// How it stands after a job.
struct Aftermath {
  std::string now;     // where the group's devices are: DriversNow()
  std::string holder;  // who has them open, where that is known: HoldersNow()
  std::string next;    // what happens next, and when
};
// bind_done, bind_failed, bind_stuck and so on.
Event JobEnded(const JobEvent& event, const Aftermath& after);
Event Recovered(const Job& job);  // recovered
// What makes one failure differ from another: code, step and error.
std::string FailureOf(const JobEvent& event);
// "EBUSY"; empty where the kernel gave no number.
std::string ErrnoName(const absl::Status& status);
// What to do about `code` where it is about this device.
std::string RemedyFor(Code code, const std::string& address);
// What to do about what `text` says: the remedy of the code that it names, empty for none.
std::string RemedyIn(const std::string& text, const std::string& address);
// What to do about a failed job: its own words, else its code's.
std::string RemedyOf(const JobEvent& event);
// config_reloaded, config_rejected. `why`: what had it read, "SIGHUP" or "the file has changed".
// `changes`: nullopt where they were not counted.
Event ConfigReloaded(const std::string& file, const std::string& why,
                     std::optional<size_t> changes);
Event ConfigRejected(const absl::Status& error, const std::string& why);
Event ConfigKept(const std::vector<std::string>& keys);  // config_kept
Event Foreseen(const PlanChange& change);                // config_plan
Event ModeSeen(const ModeStatus& mode);                  // mode_switching, mode_ready, mode_blocked
// mode_invalid. `fallback`: what counts instead.
Event ModeInvalid(const std::string& label, const std::string& value, Mode fallback);
Event UeventsUnavailable(const std::string& error);  // uevents_unavailable
Event CdiFailed(const std::string& problem);         // cdi_failed
Event NfdFailed(const std::string& problem);         // nfd_failed
Event PluginSeen(const PluginEvent& event);          // registered, allocated, …

}  // namespace vfio_agent
