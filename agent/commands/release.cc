#include <algorithm>
#include <iostream>
#include <optional>
#include <set>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "agent/commands/commands.h"
#include "agent/daemon/daemon_lock.h"
#include "agent/daemon/report.h"
#include "agent/exit_code.h"
#include "agent/live.h"
#include "agent/log.h"
#include "agent/outlets/status.h"
#include "agent/text/json.h"
#include "agent/work/holders_now.h"
#include "agent/work/one_shot.h"
#include "agent/work/taken.h"
#include "agent/work/work.h"
#include "deviceplugin/kubelet/server.h"
#include "deviceplugin/status/status_server.h"
#include "iommu/mdev/mdev.h"
#include "iommu/plan/release.h"
#include "iommu/policy/selector.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

// With SELECTORs: what they mean. Without: what this agent has taken, and nothing else.
absl::StatusOr<std::vector<PciAddress>> Wanted(const Session& session, const Picture& picture) {
  std::vector<PciAddress> wanted;
  if (session.invocation().arguments.empty()) {
    wanted = TakenDevices(picture);
    std::ranges::copy(ParentsOfOwnMdevs(picture.facts), std::back_inserter(wanted));
    return wanted;
  }
  ASSIGN_OR_RETURN(const auto groups, FindTargets(picture, session.invocation().arguments));
  for (const GroupPlan* group : groups) {
    for (const Member& member : group->members) wanted.push_back(member.address);
  }
  return wanted;
}

bool HasParent(const std::vector<const GroupPlan*>& groups, const MdevInstance& mdev) {
  return std::ranges::any_of(groups, [&mdev](const GroupPlan* group) {
    return std::ranges::count(group->members, *mdev.parent, &Member::address) > 0;
  });
}

// Of a resource of mediated devices its own are meant, and not all that their parents have made.
std::set<std::string> WantedMdevs(const Session& session, const Picture& picture) {
  const std::vector<std::string>& selectors = session.invocation().arguments;
  if (selectors.empty()) return OwnMdevs(picture.facts);
  std::set<std::string> uuids;
  for (const std::string& selector : selectors) {
    if (const MdevInstance* const meant = MdevMeant(picture.facts, selector)) {
      if (IsOwnMdev(*meant)) uuids.insert(meant->uuid);
      continue;
    }
    if (auto offered = OwnMdevsOf(picture.facts, picture.plan.resources, selector)) {
      uuids.merge(*offered);
      continue;
    }
    const auto groups = FindTargets(picture, {selector});
    for (const MdevInstance& mdev : picture.facts.mdev.instances) {
      if (IsOwnMdev(mdev) && groups.ok() && HasParent(*groups, mdev)) uuids.insert(mdev.uuid);
    }
  }
  return uuids;
}

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

// Nothing is taken from under a daemon that offers it: the kubelet could give it to a pod in the
// moment between our look and our write, and the daemon would take it back at once. What it offers
// is for it to say: our configuration may be a newer one. The lock comes second, since a daemon
// that could not take it (no room, a read-only directory) serves all the same.
void RefuseOffered(const Session& session, std::vector<GroupRelease>& releases) {
  const std::string& state_dir = session.settings().state_dir;
  if (releases.empty()) return;
  const absl::StatusOr<AgentStatus> answer = AskDaemon(state_dir);
  const std::optional<pid_t> holder = DaemonLock::Running(state_dir);
  if (!answer.ok() && !holder) return;
  for (GroupRelease& release : releases) {
    std::vector<int> groups = release.vf_groups;
    groups.insert(groups.begin(), release.group);
    for (const int group : groups) {
      const std::optional<Refusal> refusal =
          answer.ok() ? Objection(*answer, group) : NoAnswer(*holder, answer.status(), group);
      if (refusal) release.refusals.push_back(*refusal);
    }
  }
}

struct Line {
  GroupRelease release;
  std::vector<Refusal> failures;
};

std::vector<Line> Carry(std::vector<GroupRelease> releases, Session& session,
                        const Picture& picture) {
  std::vector<Line> lines;
  std::vector<Job> jobs;
  for (GroupRelease& release : releases) {
    if (release.refusals.empty()) {
      jobs.push_back(MakeReleaseJob(release, picture.custody.records));
    }
    lines.push_back({.release = std::move(release)});
  }
  for (const JobEvent& event : RunJobs(std::move(jobs), session)) {
    if (event.status.ok()) continue;
    if (!IsCopy(session.tree())) {
      UseReader reader;
      Log(JobEnded(event, {.now = DriversNow(session.tree(), event.job),
                           .holder = HoldersNow(session.tree(), event, reader),
                           .next = "left as it is"}));
    }
    const auto line = std::ranges::find_if(
        lines, [&event](const Line& l) { return l.release.group == event.job.group; });
    // A holder that only the kernel knew of: refused like the others.
    std::vector<Refusal>& reasons =
        event.code == Code::kHeld ? line->release.refusals : line->failures;
    reasons.push_back({.code = event.code,
                       .group = event.job.group,
                       .text = Message(event.status),
                       .remedy = RemedyOf(event)});
  }
  return lines;
}

std::string_view Word(const Line& line) {
  if (!line.release.refusals.empty()) return "refused";
  return line.failures.empty() ? "released" : "failed";
}

void PrintText(const std::vector<Line>& lines) {
  for (const Line& line : lines) {
    std::vector<std::string> members;
    for (const PciAddress& member : line.release.members) members.push_back(member.ToString());
    if (!line.release.mdev.empty()) members.push_back(line.release.mdev);
    std::cout << absl::StrFormat("group %d: %s: %s\n", line.release.group, Word(line),
                                 absl::StrJoin(members, " "));
    for (const Refusal& refusal : line.release.refusals) std::cout << RefusalText(refusal, "  ");
    for (const Refusal& failure : line.failures) std::cout << RefusalText(failure, "  ");
  }
  if (lines.empty()) std::cout << "nothing to release\n";
}

void PrintJson(const std::vector<Line>& lines, Output output) {
  Json groups = Json::array();
  for (const Line& line : lines) {
    Json members = Json::array(), reasons = Json::array();
    for (const PciAddress& member : line.release.members) members.push_back(member.ToString());
    for (const Refusal& refusal : line.release.refusals) reasons.push_back(RefusalToJson(refusal));
    for (const Refusal& failure : line.failures) reasons.push_back(RefusalToJson(failure));
    groups.push_back({{"group", line.release.group},
                      {"members", members},
                      {"result", std::string(Word(line))},
                      {"refusals", reasons}});
    if (!line.release.mdev.empty()) groups.back()["mdev"] = line.release.mdev;
  }
  const Json document = {{"schema", "vfio-agent/release/v1"}, {"groups", groups}};
  PrintDocument(document, output);
}

int ExitOf(const std::vector<Line>& lines) {
  const auto failed = [](const Line& line) { return !line.failures.empty(); };
  const auto refused = [](const Line& line) { return !line.release.refusals.empty(); };
  if (std::ranges::any_of(lines, failed)) return kExitFailed;
  return std::ranges::any_of(lines, refused) ? kExitRefused : kExitDone;
}

int Release(Session& session, bool is_daemon) {
  const std::unique_ptr<Picture> picture = TakeOrPrint(session);
  if (picture == nullptr) return kExitFailed;
  absl::StatusOr<std::vector<PciAddress>> wanted = Wanted(session, *picture);
  if (!wanted.ok()) {
    PrintError(Message(wanted.status()));
    return kExitUsage;
  }
  SetAsideOrPrint(session, *picture);
  std::vector<GroupRelease> releases =
      PlanReturn(session, *picture, *std::move(wanted), WantedMdevs(session, *picture));
  if (!picture->custody.inquiry->use.processes_known) {
    PrintError(
        "not all processes can be seen (hostPID, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH): holders of "
        "a device by its cdev may be missed");
  }
  if (!is_daemon) RefuseOffered(session, releases);
  const std::vector<Line> lines = Carry(std::move(releases), session, *picture);
  const Output output = session.invocation().output;
  IsDocument(output) ? PrintJson(lines, output) : PrintText(lines);
  // Without a selector a record that cannot be read is a device that stayed behind.
  const bool left = !picture->unreadable.empty() && session.invocation().arguments.empty();
  return left ? kExitFailed : ExitOf(lines);
}

}  // namespace

int ReleaseCommand(Session& session) { return Release(session, false); }

int ReleaseTaken(Session& session) { return Release(session, true); }

}  // namespace vfio_agent
