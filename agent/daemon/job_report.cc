// The log lines of what the kernel is asked to do.
#include <cerrno>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "agent/daemon/report.h"
#include "iommu/plan/job_key.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

std::string Devices(const std::vector<Action>& actions) {
  std::vector<std::string> list;
  for (const PciAddress& device : DevicesOf(actions)) list.push_back(device.ToString());
  return absl::StrJoin(list, ",");
}

// The group's number; empty for a parent of mediated devices that has none.
std::string GroupOf(const Job& job) {
  return ParentOfKey(job.group) ? "" : absl::StrFormat("%d", job.group);
}

std::string Members(const Job& job) {
  const std::optional<PciAddress> lone = ParentOfKey(job.group);
  return lone ? lone->ToString() : Devices(job.actions);
}

// The mediated devices that are made or removed.
std::string Mdevs(const std::vector<Action>& actions) {
  std::vector<std::string> list;
  for (const Action& action : actions) {
    if (std::holds_alternative<CreateMdev>(action) || std::holds_alternative<RemoveMdev>(action)) {
      list.push_back(ValueOf(action));
    }
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

constexpr char kNoDriver[] = "none";
constexpr char kAnyDriver[] = "any";

// Where the plan takes `device` from: "none" where it had no driver.
std::string DriverBefore(const std::vector<Action>& actions, const PciAddress& device) {
  for (const Action& action : actions) {
    const auto* const unbind = std::get_if<Unbind>(&action);
    if (unbind != nullptr && unbind->device == device) return unbind->driver;
  }
  return kNoDriver;
}

// Where it is to go: "any" where the kernel is to choose.
std::string DriverAfter(const std::vector<Action>& actions, const PciAddress& device) {
  for (const Action& action : actions) {
    const auto* const probe = std::get_if<Probe>(&action);
    if (probe != nullptr && probe->device == device && !probe->expect.empty()) return probe->expect;
  }
  return kAnyDriver;
}

// How many VFs the plan gives `device`; nullopt where it does not touch them.
std::optional<int> VfsOf(const std::vector<Action>& actions, const PciAddress& device) {
  for (const Action& action : actions) {
    const auto* const vfs = std::get_if<SetVfs>(&action);
    if (vfs != nullptr && vfs->device == device) return vfs->count;
  }
  return std::nullopt;
}

// The vGPU type that the plan gives `device`, 0 to take it away; nullopt where it does neither.
std::optional<int> VgpuOf(const std::vector<Action>& actions, const PciAddress& device) {
  for (const Action& action : actions) {
    const auto* const vgpu = std::get_if<SetVgpuType>(&action);
    if (vgpu != nullptr && vgpu->device == device) return vgpu->type;
  }
  return std::nullopt;
}

// What its driver's refusal of a vGPU type mostly means; "" where the code says it all.
std::string VgpuRemedy(const JobEvent& event) {
  const std::vector<Action>& actions = event.job.actions;
  if (event.done >= actions.size() || event.code != Code::kProbeRefused) return "";
  const auto* const vgpu = std::get_if<SetVgpuType>(&actions[event.done]);
  if (vgpu == nullptr) return "";
  return absl::StrFormat(
      "the card has no room for it beside the others, which must be of one size (unless "
      "`nvidia-smi vgpu -shm 1`), or nvidia-vgpu-mgr does not run: `dmesg | grep %s`",
      vgpu->device.ToString());
}

// What its driver's answer to a number of VFs mostly means; "" where the code says it all.
std::string VfsRemedy(const JobEvent& event) {
  const std::vector<Action>& actions = event.job.actions;
  if (event.done >= actions.size() || event.code != Code::kProbeRefused) return "";
  const auto* const vfs = std::get_if<SetVfs>(&actions[event.done]);
  if (vfs == nullptr) return "";
  const std::string log =
      absl::StrFormat("; its driver's reason is in `dmesg | grep %s`", vfs->device.ToString());
  switch (ErrnoOf(event.status)) {
    case ENOENT:
    case ENOSYS:
    case EOPNOTSUPP:
      return "this driver makes no virtual functions by sriov_numvfs: use the vendor's tool, and "
             "sriov: {} for what it makes" +
             log;
    case ENOMEM:
    case ENOSPC:
      return "the firmware left no room for their memory or buses: switch on SR-IOV and 'above 4G "
             "decoding', or boot with pci=realloc,assign-busses" +
             log;
    case ERANGE:
      return "it can have less than that: see sriov_totalvfs" + log;
    default:
      return "see why its driver makes none" + log;
  }
}

// The one that the failed step is about; the group's first where it is about none.
std::optional<PciAddress> DeviceIn(const JobEvent& event) {
  const std::vector<Action>& actions = event.job.actions;
  const PciAddress* const device =
      event.done < actions.size() ? DeviceOf(actions[event.done]) : nullptr;
  if (device != nullptr) return *device;
  const std::vector<PciAddress> all = DevicesOf(actions);
  if (!all.empty()) return all.front();
  if (!event.job.records.empty()) return event.job.records.begin()->first;
  return std::nullopt;
}

// Which device, from where to where, which step, and the command to try by hand.
void AddStep(const JobEvent& event, Event& line) {
  const std::vector<Action>& actions = event.job.actions;
  if (const std::optional<PciAddress> device = DeviceIn(event)) {
    line.With("device", device->ToString());
    if (const auto record = event.job.records.find(*device); record != event.job.records.end()) {
      line.With("id", absl::StrFormat("%04x:%04x", record->second.vendor, record->second.device));
    }
    if (const std::optional<int> vfs = VfsOf(actions, *device)) {
      line.With("vfs", absl::StrFormat("%d", *vfs));
    } else if (const std::optional<int> vgpu = VgpuOf(actions, *device)) {
      line.With("vgpu_type", absl::StrFormat("%d", *vgpu));
    } else {
      line.With("from", DriverBefore(actions, *device)).With("to", DriverAfter(actions, *device));
    }
  }
  if (event.done >= actions.size()) return;
  line.With("step", absl::StrFormat("%d/%d", event.done + 1, actions.size()));
  line.With("try", ToShell(actions[event.done]));
}

}  // namespace

std::string RemedyOf(const JobEvent& event) {
  if (!event.remedy.empty()) return event.remedy;
  if (std::string remedy = VfsRemedy(event); !remedy.empty()) return remedy;
  if (std::string remedy = VgpuRemedy(event); !remedy.empty()) return remedy;
  const std::optional<PciAddress> device = DeviceIn(event);
  return RemedyFor(event.code, device ? device->ToString() : "<address>");
}

Event JobStarted(const Job& job) {
  const std::vector<PciAddress> devices = DevicesOf(job.actions);
  const std::optional<int> vgpu =
      devices.empty() ? std::nullopt : VgpuOf(job.actions, devices.front());
  Event event{.name = job.kind == JobKind::kBind ? "bind_started" : "release_started"};
  return event.With("group", GroupOf(job))
      .With("members", Members(job))
      .With("mdevs", Mdevs(job.actions))
      .With("vgpu_type", vgpu ? absl::StrFormat("%d", *vgpu) : "")
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

Event JobEnded(const JobEvent& event, const Aftermath& after) {
  const bool well = event.status.ok() || event.cut_off;
  Event line{.level = well ? Level::kInfo : Level::kError, .name = NameOf(event)};
  line.With("group", GroupOf(event.job))
      .With("members", Members(event.job))
      .With("mdevs", Mdevs(event.job.actions));
  if (event.cut_off) line.With("now", after.now).With("next", after.next);
  if (!well) {
    AddStep(event, line);
    line.With("code", std::string(CodeName(event.code)))
        .With("err", Message(event.status))
        .With("errno", ErrnoName(event.status))
        .With("stack", absl::StrJoin(event.stack, " < "))
        .With("holder", after.holder)
        .With("now", after.now)
        .With("remedy", RemedyOf(event))
        .With("next", after.next);
  }
  return line.With("took_ms", absl::StrFormat("%d", absl::ToInt64Milliseconds(event.took)));
}

}  // namespace vfio_agent
