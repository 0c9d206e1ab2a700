// The log lines of a configuration that is read while the agent runs.
#include <cerrno>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "agent/daemon/report.h"
#include "iommu/vgpu/vgpu.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

const char* NextOf(PlanChange::Kind kind) {
  switch (kind) {
    case PlanChange::Kind::kRenamed:
      return "pods and machines that name the old resource find none";
    case PlanChange::Kind::kNoLongerServed:
      return "its units become Unhealthy; devices stay bound until `vfio-agent release`, or a mode "
             "that gives them back";
    case PlanChange::Kind::kVfsStay:
      return "their number stays and they stay in service, until they are released";
    case PlanChange::Kind::kVfsLeft:
      return "those that were made stay until `vfio-agent release`";
    default:
      return "";
  }
}

constexpr char kVgpuNext[] = "its units become Unhealthy, and its vGPU type is taken away";

}  // namespace

Event Foreseen(const PlanChange& change) {
  const GroupPlan& group = change.group;
  std::vector<std::string> members, codes, texts, remedies;
  for (const Member& member : group.members) {
    if (member.role != Role::kBridge) members.push_back(member.address.ToString());
  }
  for (const Refusal& refusal : group.refusals) {
    codes.emplace_back(CodeName(refusal.code));
    texts.push_back(refusal.text);
    remedies.push_back(refusal.remedy);
  }
  const bool served = !TakesVgpuAway(group) &&
                      (group.verdict == Verdict::kBind || group.verdict == Verdict::kBound);
  const std::string resource = served ? group.resource : "";
  Event event{.name = "config_plan"};
  return event.With("group", group.group ? absl::StrFormat("%d", *group.group) : "")
      .With("members", absl::StrJoin(members, ","))
      .With("change", std::string(Name(change.kind)))
      .With("resource", resource)
      .With("before", change.before == resource ? "" : change.before)
      .With("code", absl::StrJoin(codes, ","))
      .With("err", absl::StrJoin(texts, "; "))
      .With("remedy", absl::StrJoin(remedies, "; "))
      .With("next", TakesVgpuAway(group) ? kVgpuNext : NextOf(change.kind));
}

Event ConfigReloaded(const std::string& file, const std::string& why,
                     std::optional<size_t> changes) {
  Event event{.name = "config_reloaded"};
  return event.With("config", file)
      .With("why", why)
      .With("changes", changes ? absl::StrFormat("%d", *changes) : "");
}

Event ConfigRejected(const absl::Status& error, const std::string& why) {
  Event event{.level = Level::kError, .name = "config_rejected"};
  const bool denied = ErrnoOf(error) == EACCES;
  return event.With("err", Message(error))
      .With("errno", ErrnoName(error))
      .With("why", why)
      .With("next", "the old configuration stays in force")
      .With("remedy",
            denied ? "give the file and its directories to root, or let all read them: the daemon "
                     "has given up CAP_DAC_OVERRIDE"
                   : "mend the file (`vfio-agent config check`); it is read again by itself");
}

Event ConfigKept(const std::vector<std::string>& keys) {
  Event event{.level = Level::kWarn, .name = "config_kept"};
  return event.With("settings", absl::StrJoin(keys, ","))
      .With("next", "what is in force since the start stays; the new values count after a restart");
}

}  // namespace vfio_agent
