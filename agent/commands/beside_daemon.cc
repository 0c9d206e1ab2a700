#include "agent/commands/beside_daemon.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "agent/daemon/daemon_lock.h"
#include "deviceplugin/kubelet/server.h"
#include "deviceplugin/status/status_server.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

// The daemon answers at once or is in trouble.
constexpr absl::Duration kPatience = absl::Seconds(5);

constexpr char kLeaveToRelease[] =
    "take it out of the configuration (resources[].exclude, mdev[].parent), which the daemon "
    "notices by itself, or stop the daemon; then try again";

absl::StatusOr<AgentStatus> AskDaemon(const std::string& state_dir) {
  ASSIGN_OR_RETURN(const std::string socket, SocketPath(state_dir, kStatusSocket));
  return FetchStatus(socket, kPatience);
}

// By the state and not by the health alone: a unit that waits until another resource's list lets
// go of it is listed as soon as that happens.
bool IsServed(const UnitStatus& unit) {
  return unit.healthy || unit.state == Name(UnitState::kReady) ||
         unit.state == Name(UnitState::kHeld) || unit.state == Name(UnitState::kWithheld);
}

// The resource under which the daemon serves the group; "" where it does not.
std::string ServedAs(const NodeStatus& node, int group) {
  for (const ResourceStatus& resource : node.resources) {
    for (const UnitStatus& unit : resource.units) {
      const bool has = unit.group == group || std::ranges::count(unit.groups, group) > 0;
      if (has && IsServed(unit)) return resource.name;
    }
  }
  return "";
}

bool WritesTo(const std::vector<JobStatus>& jobs, int group) {
  return std::ranges::any_of(jobs, [group](const JobStatus& job) {
    return job.group == group && job.state != "elsewhere";  // the daemon's own
  });
}

// Why the daemon that gave this answer cannot do without the group; nullopt where it can.
std::optional<Refusal> Objection(const AgentStatus& daemon, int group) {
  Refusal refusal = {.code = Code::kHeld, .group = group, .remedy = kLeaveToRelease};
  if (daemon.picture.at == absl::UnixEpoch()) {
    refusal.text = absl::StrFormat("the daemon (pid %d) has not read the node yet", daemon.pid);
    refusal.remedy = "wait until `vfio-agent status` has a picture; then try again";
    return refusal;
  }
  if (const std::string resource = ServedAs(*daemon.node, group); !resource.empty()) {
    refusal.text = absl::StrFormat("the daemon (pid %d) serves group %d to the kubelet as %s",
                                   daemon.pid, group, resource);
    return refusal;
  }
  if (!WritesTo(daemon.jobs, group)) return std::nullopt;
  refusal.text = absl::StrFormat("the daemon (pid %d) is writing to group %d", daemon.pid, group);
  refusal.remedy = "wait until `vfio-agent status` shows the write no more; then try again";
  return refusal;
}

// Somebody has the lock and cannot be asked: it may serve any of them.
Refusal NoAnswer(pid_t daemon, const absl::Status& why, int group) {
  const std::string pid = daemon == 0 ? "" : absl::StrFormat(" (pid %d)", daemon);
  return {.code = Code::kHeld,
          .group = group,
          .text = absl::StrFormat("the daemon%s may serve group %d and cannot be asked: %s", pid,
                                  group, Message(why)),
          .remedy = "stop the daemon, or find out why it does not answer; then try again"};
}

}  // namespace

// The lock comes second, since a daemon that could not take it (no room, a read-only directory)
// serves all the same.
BesideDaemon BesideDaemon::Ask(const std::string& state_dir) {
  BesideDaemon daemon(AskDaemon(state_dir));
  daemon.holder_ = DaemonLock::Running(state_dir);
  return daemon;
}

std::vector<Refusal> BesideDaemon::Objections(const std::vector<int>& groups) const {
  std::vector<Refusal> refusals;
  for (const int group : groups) {
    if (!answer_.ok() && !holder_) continue;
    std::optional<Refusal> refusal =
        answer_.ok() ? Objection(*answer_, group) : NoAnswer(*holder_, answer_.status(), group);
    if (refusal) refusals.push_back(*std::move(refusal));
  }
  return refusals;
}

// The kubelet could give it to a pod in the moment between our look and our write.
std::vector<Refusal> WhyLeftToDaemon(const std::string& state_dir, int group,
                                     const PciAddress& function) {
  const std::optional<pid_t> daemon = DaemonLock::Running(state_dir);
  if (!daemon) return {};
  return {
      {.code = Code::kHeld,
       .group = group,
       .address = function,
       .text = absl::StrFormat("a daemon (pid %d) runs: it takes vGPU types away itself", *daemon),
       .remedy = "change the daemon's configuration, which it notices by itself, or stop it"}};
}

}  // namespace vfio_agent
