#include "iommu/apply.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "sysfs/clock.h"
#include "sysfs/device/group_nodes.h"
#include "sysfs/paths.h"
#include "sysfs/status.h"
#include "sysfs/tree.h"
#include "sysfs/writer.h"

namespace vfio_agent {
namespace {

constexpr absl::Duration kNodePoll = absl::Milliseconds(5);

struct Step {
  const Tree& tree;
  Writer& writer;
  absl::Duration node_timeout;

  absl::Status operator()(const LoadModule& a) const { return writer.LoadModule(a.module); }

  absl::Status operator()(const SetOverride& a) const {
    return writer.Write(OverridePath(a.device), a.driver + "\n");
  }

  absl::Status operator()(const SetD3cold& a) const {
    return writer.Write(D3coldPath(a.device), a.allowed ? "1" : "0");
  }

  absl::Status operator()(const Unbind& a) const {
    absl::Status status = writer.Write(UnbindPath(a.driver), a.device.ToString());
    // The kernel gives one answer for a device that is gone and for one that left this driver.
    if (ErrnoOf(status) == ENODEV && tree.Exists(DeviceDir(a.device))) {
      return absl::AbortedError(
          absl::StrFormat("%s is not on %s any more", a.device.ToString(), a.driver));
    }
    return status;
  }

  absl::Status operator()(const Probe& a) const {
    RETURN_IF_ERROR(writer.Write(kDriversProbe, a.device.ToString()));
    if (a.expect.empty()) return absl::OkStatus();
    const absl::StatusOr<std::string> driver = tree.ReadLinkName(DriverLink(a.device));
    if (absl::IsNotFound(driver.status())) {
      return absl::FailedPreconditionError(
          absl::StrFormat("%s did not take %s", a.expect, a.device.ToString()));
    }
    if (driver.ok() && *driver != a.expect) {
      return absl::AbortedError(
          absl::StrFormat("%s took %s instead of %s", *driver, a.device.ToString(), a.expect));
    }
    return driver.status();
  }

  absl::Status operator()(const AwaitNode& a) const {
    // A kernel that has group nodes makes them before its members' own; one that was built without
    // them (CONFIG_VFIO_GROUP) has only these.
    const std::string node = GroupNode(a.group);
    for (const absl::Time end = MonotonicNow() + node_timeout;
         !tree.Exists(node) && GroupCdevs(tree, a.group).empty(); absl::SleepFor(kNodePoll)) {
      if (MonotonicNow() >= end) {
        return absl::DeadlineExceededError(absl::StrFormat("/%s did not appear", node));
      }
    }
    return absl::OkStatus();
  }

  absl::Status operator()(const SetAutoprobe& a) const {
    return writer.Write(VfsAutoprobePath(a.device), a.on ? "1" : "0");
  }

  absl::Status operator()(const SetVfs& a) const {
    return writer.Write(NumVfsPath(a.device), absl::StrFormat("%d", a.count));
  }

  absl::Status operator()(const CreateMdev& a) const {
    const absl::Status status = writer.Write(MdevCreatePath(a.parent, a.type), a.uuid);
    // It is there already where a process was killed after its write.
    if (!status.ok() && ErrnoOf(status) != EEXIST) return status;
    if (!status.ok() && !tree.Exists(MdevDir(a.uuid))) {
      return absl::FailedPreconditionError(absl::StrFormat(
          "%s is being removed: the kernel waits for those who have it open", a.uuid));
    }
    const absl::StatusOr<std::string> type = tree.ReadLinkName(MdevDir(a.uuid) + "/mdev_type");
    if (!type.ok() || *type != a.type) {
      return absl::AbortedError(absl::StrFormat("%s is of type %s, not %s", a.uuid,
                                                type.ok() ? *type : "unknown", a.type));
    }
    const absl::StatusOr<std::string> link = tree.ReadLinkName(MdevDir(a.uuid) + "/iommu_group");
    AwaitNode node;
    if (!link.ok() || !absl::SimpleAtoi(*link, &node.group)) {
      return absl::FailedPreconditionError(absl::StrFormat("%s came without a group", a.uuid));
    }
    return (*this)(node);
  }

  absl::Status operator()(const RemoveMdev& a) const {
    absl::Status status = writer.Write(MdevDir(a.uuid) + "/remove", "1");
    return status.ok() || tree.Exists(MdevDir(a.uuid)) ? status : absl::OkStatus();
  }

  absl::Status operator()(const SetVgpuType& a) const {
    RETURN_IF_ERROR(writer.Write(CurrentVgpuPath(a.device), absl::StrFormat("%d", a.type)));
    const absl::StatusOr<std::string> now = tree.ReadText(CurrentVgpuPath(a.device));
    RETURN_IF_ERROR(now.status());
    int type = -1;
    if (absl::SimpleAtoi(*now, &type) && type == a.type) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrFormat("the driver took the write, and the vGPU type of %s is not %d but another",
                        a.device.ToString(), a.type));
  }
};

Code CodeOf(const LoadModule&) { return Code::kVfioDriverMissing; }
Code CodeOf(const SetOverride&) { return Code::kOverrideUnsupported; }
Code CodeOf(const SetD3cold&) { return Code::kPowerD3cold; }
Code CodeOf(const Unbind&) { return Code::kDriverChanged; }
Code CodeOf(const Probe&) { return Code::kProbeRefused; }
Code CodeOf(const AwaitNode&) { return Code::kNodeMissing; }
Code CodeOf(const SetAutoprobe&) { return Code::kProbeRefused; }
Code CodeOf(const SetVfs&) { return Code::kProbeRefused; }
Code CodeOf(const CreateMdev&) { return Code::kProbeRefused; }
Code CodeOf(const RemoveMdev&) { return Code::kHeld; }
Code CodeOf(const SetVgpuType& a) { return a.type == 0 ? Code::kHeld : Code::kProbeRefused; }

// An instance that is still going, or came without a group: those after it are made all the same.
bool KeepsNoOther(const Action& action, const absl::Status& status) {
  return std::holds_alternative<CreateMdev>(action) && absl::IsFailedPrecondition(status);
}

}  // namespace

Outcome Apply(std::span<const Action> actions, const Tree& tree, Writer& writer,
              absl::Duration node_timeout, const OnStep& on_step) {
  Outcome outcome;
  for (size_t step = 0; step < actions.size(); ++step) {
    if (absl::Status refused = on_step(step); !refused.ok()) {
      return {.done = step, .status = std::move(refused), .refused = true};
    }
    absl::Status status = std::visit(Step{tree, writer, node_timeout}, actions[step]);
    if (status.ok()) {
      outcome.done += outcome.status.ok() ? 1 : 0;
      continue;
    }
    const bool go_on = KeepsNoOther(actions[step], status);
    if (outcome.status.ok()) outcome.status = std::move(status);
    if (!go_on) return outcome;
  }
  return outcome;
}

Code CodeOfFailure(const Action& action, const absl::Status& status) {
  // NVIDIA's driver says EPERM of a function that a guest has, and where the card has no room.
  if (std::holds_alternative<SetVgpuType>(action) && ErrnoOf(status) == EPERM) {
    return std::visit([](const auto& a) { return CodeOf(a); }, action);
  }
  if (absl::IsPermissionDenied(status) || ErrnoOf(status) == EROFS) return Code::kPermissionDenied;
  if (std::holds_alternative<CreateMdev>(action) && absl::IsDeadlineExceeded(status)) {
    return Code::kNodeMissing;
  }
  if (absl::IsAborted(status)) return Code::kDriverChanged;
  const int error = ErrnoOf(status);
  // The kernel changes no number but from 0: somebody else has made some meanwhile.
  if (std::holds_alternative<SetVfs>(action) && error == EBUSY) return Code::kPfHasVfs;
  if (DeviceOf(action) != nullptr && (error == ENODEV || error == ENXIO)) return Code::kDeviceGone;
  return std::visit([](const auto& a) { return CodeOf(a); }, action);
}

}  // namespace vfio_agent
