#include <algorithm>
#include <iostream>
#include <map>
#include <set>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "agent/commands/beside_daemon.h"
#include "agent/commands/commands.h"
#include "agent/daemon/report.h"
#include "agent/exit_code.h"
#include "agent/live.h"
#include "agent/log.h"
#include "agent/text/json.h"
#include "agent/work/holders_now.h"
#include "agent/work/one_shot.h"
#include "agent/work/taken.h"
#include "agent/work/work.h"
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

std::vector<int> GroupsOf(const GroupRelease& release) {
  std::vector<int> groups = release.vf_groups;
  groups.insert(groups.begin(), release.group);
  return groups;
}

void RefuseOffered(const Session& session, std::vector<GroupRelease>& releases) {
  if (releases.empty()) return;
  const BesideDaemon daemon = BesideDaemon::Ask(session.settings().state_dir);
  for (GroupRelease& release : releases) {
    for (Refusal& refusal : daemon.Objections(GroupsOf(release))) {
      release.refusals.push_back(std::move(refusal));
    }
  }
}

struct Line {
  GroupRelease release;
  std::vector<Refusal> failures;
};

std::vector<Line> Carry(std::vector<GroupRelease> releases, Session& session,
                        const Picture& picture, bool is_daemon) {
  std::vector<Line> lines;
  std::vector<Job> jobs;
  std::map<int, std::vector<int>> groups;  // of each job
  for (GroupRelease& release : releases) {
    if (release.refusals.empty()) {
      jobs.push_back(MakeReleaseJob(release, picture.custody.records));
      groups[jobs.back().group] = GroupsOf(release);
    }
    lines.push_back({.release = std::move(release)});
  }
  const auto object = [&](const Job& job) {
    return is_daemon
               ? std::vector<Refusal>()
               : BesideDaemon::Ask(session.settings().state_dir).Objections(groups.at(job.group));
  };
  for (const JobEvent& event : RunJobs(std::move(jobs), session, object)) {
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
  const std::vector<Line> lines = Carry(std::move(releases), session, *picture, is_daemon);
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
