#include <algorithm>
#include <iostream>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "agent/commands.h"
#include "agent/daemon_lock.h"
#include "agent/exit_code.h"
#include "agent/json.h"
#include "agent/log.h"
#include "agent/one_shot.h"
#include "agent/report.h"
#include "agent/work.h"
#include "iommu/release.h"
#include "iommu/selector.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

// With SELECTORs: what they mean. Without: what this agent has taken, and nothing else.
absl::StatusOr<std::vector<PciAddress>> Wanted(const Session& session, const Picture& picture) {
  std::vector<PciAddress> wanted;
  if (session.invocation().arguments.empty()) {
    for (const auto& [address, record] : picture.custody.records) {
      if (record.this_boot) wanted.push_back(address);
    }
    return wanted;
  }
  ASSIGN_OR_RETURN(const auto groups, FindTargets(picture, session.invocation().arguments));
  for (const GroupPlan* group : groups) {
    for (const Member& member : group->members) wanted.push_back(member.address);
  }
  return wanted;
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
    Log(JobEnded(event, DriversNow(session.tree(), event.job), "left as it is"));
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

}  // namespace

int ReleaseCommand(Session& session) {
  const std::unique_ptr<Picture> picture = TakeOrPrint(session);
  if (picture == nullptr) return kExitFailed;
  const auto wanted = Wanted(session, *picture);
  if (!wanted.ok()) {
    PrintError(Message(wanted.status()));
    return kExitUsage;
  }
  SetAsideOrPrint(session, *picture);
  if (const pid_t daemon = DaemonLock::Running(session.settings().state_dir); daemon != 0) {
    PrintError(absl::StrFormat(
        "a daemon (pid %d) is at work: it takes back at once what its configuration selects",
        daemon));
  }
  session.InquireFor(*wanted, *picture);
  if (!picture->custody.inquiry->use.processes_known) {
    PrintError(
        "not all processes can be seen (hostPID, CAP_SYS_PTRACE): holders of a device by "
        "its cdev may be missed");
  }
  const std::vector<Line> lines =
      Carry(PlanRelease(picture->facts, picture->custody, *wanted), session, *picture);
  const Output output = session.invocation().output;
  IsDocument(output) ? PrintJson(lines, output) : PrintText(lines);
  // Without a selector a record that cannot be read is a device that stayed behind.
  const bool left = !picture->unreadable.empty() && session.invocation().arguments.empty();
  return left ? kExitFailed : ExitOf(lines);
}

}  // namespace vfio_agent
