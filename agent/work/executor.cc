#include "agent/work/executor.h"

#include <algorithm>
#include <span>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "iommu/plan/made_vfs.h"
#include "iommu/plan/release.h"
#include "sysfs/device/config_space.h"
#include "sysfs/paths.h"
#include "sysfs/status.h"
#include "sysfs/tree.h"
#include "sysfs/use/holders.h"
#include "sysfs/writer.h"

namespace vfio_agent {
namespace {

// Steps of devices that no record stands for (a release of adopted ones) are not journalled.
absl::Status JournalStep(const Job& job, size_t step, const Journal& journal) {
  const PciAddress* const device = DeviceOf(job.actions[step]);
  if (device == nullptr) return absl::OkStatus();
  const auto record = job.records.find(*device);
  if (record == job.records.end()) return absl::OkStatus();
  Record now = record->second;
  now.releasing = job.kind == JobKind::kRelease;
  now.step = std::string(OpName(job.actions[step]));
  return journal.Write(now);
}

// The plan is of a picture that may be a moment old: somebody else's bind can have come between.
absl::Status CheckUnmoved(const Job& job, const Tree& tree) {
  for (const PciAddress& device : DevicesOf(job.actions)) {
    std::optional<std::string> planned;
    for (const Action& action : job.actions) {
      const PciAddress* const address = DeviceOf(action);
      if (address == nullptr || *address != device) continue;
      if (const auto* const unbind = std::get_if<Unbind>(&action)) planned = unbind->driver;
      if (std::holds_alternative<Probe>(action) && !planned) planned = "";
    }
    const absl::StatusOr<std::string> driver = tree.ReadLinkName(DriverLink(device));
    const std::string now = driver.ok() ? *driver : "";
    if (!planned || *planned == now || !tree.Exists(DeviceDir(device))) continue;
    return absl::AbortedError(absl::StrFormat(
        "%s has %s%s now, not %s%s as planned; nothing was written", device.ToString(),
        now.empty() ? "no driver" : "the driver ", now, planned->empty() ? "none" : "", *planned));
  }
  return absl::OkStatus();
}

// VFs that somebody else has made meanwhile, or that a guest has opened.
absl::Status CheckVfs(const Job& job, const Tree& tree) {
  for (const Action& action : job.actions) {
    const auto* const vfs = std::get_if<SetVfs>(&action);
    if (vfs != nullptr && vfs->count > 0 && tree.Exists(DeviceDir(vfs->device) + "/virtfn0")) {
      return absl::AbortedError(
          absl::StrFormat("%s has virtual functions now, which somebody else has made; nothing was "
                          "written",
                          vfs->device.ToString()));
    }
    const auto* const unbind = std::get_if<Unbind>(&action);
    if (unbind == nullptr) continue;
    const absl::StatusOr<std::string> group = tree.ReadLinkName(GroupLink(unbind->device));
    int number = -1;
    if (!group.ok() || !absl::SimpleAtoi(*group, &number) || number == job.group) continue;
    if (IsGroupOpen(tree, number) != true) continue;
    return absl::FailedPreconditionError(
        absl::StrFormat("group %d has been opened meanwhile; nothing was written", number));
  }
  return absl::OkStatus();
}

// A vGPU type that somebody else has set meanwhile, or another than the one to be taken away.
absl::Status CheckVgpu(const Job& job, const Tree& tree) {
  for (const Action& action : job.actions) {
    const auto* const vgpu = std::get_if<SetVgpuType>(&action);
    if (vgpu == nullptr) continue;
    const auto record = job.records.find(vgpu->device);
    const int ours = record == job.records.end() ? 0 : record->second.vgpu_type.value_or(0);
    const int planned = vgpu->type == 0 ? ours : 0;
    const absl::StatusOr<std::string> text = tree.ReadText(CurrentVgpuPath(vgpu->device));
    int now = -1;
    if (!text.ok() || !absl::SimpleAtoi(*text, &now) || now == planned) continue;
    return absl::AbortedError(
        absl::StrFormat("%s has the vGPU type %d now, not %d as planned; nothing was written",
                        vgpu->device.ToString(), now, planned));
  }
  return absl::OkStatus();
}

// Before the first write to any of the group's devices, so that all of them are known as begun.
absl::Status NoteAll(const Job& job, const Journal& journal) {
  for (const auto& entry : job.records) {
    Record record = entry.second;
    record.releasing = job.kind == JobKind::kRelease;
    record.step = kStepNoted;
    RETURN_IF_ERROR(journal.Write(record));
  }
  return absl::OkStatus();
}

absl::Status CloseRecords(const Job& job, const Journal& journal) {
  absl::Status status;
  for (const auto& entry : job.records) {
    Record record = entry.second;
    record.step = kStepDone;
    status.Update(job.kind == JobKind::kBind ? journal.Write(record)
                                             : journal.Forget(record.address));
  }
  return status;
}

void RestoreRecords(const Job& job, const Journal& journal) {
  for (const auto& entry : job.records) {
    const auto earlier = job.earlier.find(entry.first);
    if (earlier != job.earlier.end()) {
      journal.Write(earlier->second).IgnoreError();
    } else {
      journal.Forget(entry.first).IgnoreError();
    }
  }
}

// How many steps may have moved something. The driver can have taken a vGPU type though what it
// shows of it afterwards is wrong or cannot be read.
size_t BegunSteps(const Job& job, const Outcome& outcome) {
  const bool may_be_set = job.kind == JobKind::kBind && !outcome.refused &&
                          std::holds_alternative<SetVgpuType>(job.actions[outcome.done]);
  return outcome.done + (may_be_set ? 1 : 0);
}

// A driver that hangs must not keep other cards from being put back.
AskDrivers AskOf(const std::vector<PciAddress>& devices, const Tree& tree) {
  return [&devices, &tree](std::vector<DriverFile> files) {
    std::erase_if(files, [&devices](const DriverFile& file) {
      return std::ranges::count(devices, file.device) == 0;
    });
    return AskInTurn(tree)(files);
  };
}

// Puts back what the first `done` steps have moved, planned from what the kernel shows now; a
// device that does not go back keeps no other from it. True where there was something and all of it
// went back.
bool Undo(const Job& job, size_t done, const Tree& tree, const OnStep& on_step) {
  const std::span<const Action> steps = std::span(job.actions).first(done);
  const std::vector<PciAddress> moved = DevicesOf(steps);
  if (job.kind != JobKind::kBind || moved.empty()) return false;
  if (IsGroupOpen(tree, job.group) == true) return false;
  ConfigReader config(tree);
  const absl::StatusOr<NodeFacts> facts = TakeNodeFacts(tree, config, {}, AskOf(moved, tree));
  if (!facts.ok()) return false;
  Records records = job.records;
  NoteMadeVfs(steps, records);
  TreeWriter writer(tree);
  bool all = true;
  for (const PciAddress& device : moved) {
    const std::vector<Action> actions = PlanUndo(*facts, records, {device});
    all = Apply(actions, tree, writer, absl::ZeroDuration(), on_step).status.ok() && all;
  }
  return all;
}

}  // namespace

Execution Execute(const Job& job, const Tree& tree, const Journal& journal,
                  absl::Duration node_timeout, const std::function<void(size_t)>& at_work) {
  Execution execution;
  Outcome& outcome = execution.outcome;
  if (job.actions.empty()) {  // the kernel has done all, only the journal does not know
    outcome.status = Annotate(CloseRecords(job, journal), "only the journal does not say so yet");
    if (!outcome.status.ok()) execution.code = Code::kPermissionDenied;
    return execution;
  }
  // Where this process may not try, what the plan was made from has to do.
  if (IsGroupOpen(tree, job.group) == true) {
    execution.code = Code::kHeld;
    outcome.status = absl::FailedPreconditionError(
        absl::StrFormat("group %d has been opened meanwhile; nothing was written", job.group));
    return execution;
  }
  outcome.status = CheckVfs(job, tree);
  if (!outcome.status.ok()) {
    execution.code = absl::IsAborted(outcome.status) ? Code::kPfHasVfs : Code::kHeld;
  }
  if (outcome.status.ok()) outcome.status = CheckUnmoved(job, tree);
  if (outcome.status.ok()) {
    outcome.status = CheckVgpu(job, tree);
    if (!outcome.status.ok()) execution.code = Code::kDriverChanged;
  }
  if (!outcome.status.ok()) return execution;
  outcome.status = NoteAll(job, journal);
  outcome.refused = !outcome.status.ok();
  if (!outcome.refused) {
    TreeWriter writer(tree);
    outcome = Apply(job.actions, tree, writer, node_timeout, [&](size_t step) {
      at_work(step);
      return JournalStep(job, step, journal);
    });
  }
  if (outcome.refused) execution.code = Code::kPermissionDenied;
  if (outcome.status.ok()) {
    // An error here is none of the job's: the kernel has done all, and who finds the record
    // unfinished sees that the group is bound.
    CloseRecords(job, journal).IgnoreError();
    return execution;
  }
  const size_t begun = BegunSteps(job, outcome);
  execution.undone = Undo(job, begun, tree, [&](size_t) {
    at_work(outcome.done);
    return absl::OkStatus();
  });
  // Nothing was moved: nothing is ours.
  if (execution.undone || begun == 0) RestoreRecords(job, journal);
  execution.undone = execution.undone && outcome.done > 0;
  return execution;
}

}  // namespace vfio_agent
