#include <algorithm>
#include <iostream>

#include "absl/strings/str_format.h"
#include "agent/commands/beside_daemon.h"
#include "agent/commands/commands.h"
#include "agent/daemon/report.h"
#include "agent/exit_code.h"
#include "agent/explain/explanation.h"
#include "agent/live.h"
#include "agent/log.h"
#include "agent/text/json.h"
#include "agent/work/holders_now.h"
#include "agent/work/one_shot.h"
#include "agent/work/work.h"
#include "iommu/plan/job_key.h"
#include "iommu/vgpu/vgpu.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

enum class Result { kAlready, kBound, kNoRoom, kRefused, kFailed };

struct Line {
  const GroupPlan* group = nullptr;
  Result result = Result::kAlready;
  std::vector<Refusal> reasons;
  bool gives_vgpus = false;  // a physical function whose virtual ones are vGPUs
};

std::string_view Word(Result result) {
  switch (result) {
    case Result::kAlready:
      return "already bound";
    case Result::kBound:
      return "bound";
    case Result::kNoRoom:
      return "no vGPU type set, its card is full";
    case Result::kRefused:
      return "refused";
    case Result::kFailed:
      return "failed";
  }
  return "";
}

std::string_view Word(const Line& line) {
  if (line.group != nullptr && TakesVgpuAway(*line.group) && line.result == Result::kBound) {
    return "vGPU type taken away";
  }
  if (line.group != nullptr && !line.group->vgpu_type.empty()) {
    if (line.result == Result::kBound) return "vGPU type set";
    return line.result == Result::kAlready ? "has its vGPU type" : Word(line.result);
  }
  if (line.group != nullptr && line.group->makes_mdevs) {
    if (line.result == Result::kBound) return "mediated devices made";
    return line.result == Result::kAlready ? "no mediated devices to make" : Word(line.result);
  }
  if (line.group == nullptr || !IsPhysical(*line.group)) return Word(line.result);
  if (line.gives_vgpus && line.result == Result::kAlready) {
    return "nothing to bind, its virtual functions are given as vGPUs";
  }
  if (line.result == Result::kBound) return "virtual functions made";
  return line.result == Result::kAlready ? "has its virtual functions" : Word(line.result);
}

bool IsVfOf(const Picture& picture, const GroupPlan& group, const GroupPlan& physical) {
  return std::ranges::any_of(group.members, [&](const Member& member) {
    const PciDevice* const device = FindDevice(picture.facts, member.address);
    return device != nullptr && device->physfn &&
           std::ranges::count(physical.members, *device->physfn, &Member::address) > 0;
  });
}

bool GivesVgpus(const Picture& picture, const GroupPlan& physical) {
  return std::ranges::any_of(picture.plan.groups, [&](const GroupPlan& group) {
    return !group.vgpu_type.empty() && IsVfOf(picture, group, physical);
  });
}

Line Judge(const Picture& picture, const Session& session, const GroupPlan& group) {
  Line line{.group = &group, .reasons = group.refusals, .gives_vgpus = GivesVgpus(picture, group)};
  if (TakesVgpuAway(group)) {
    const PciAddress& function = group.members.front().address;
    for (Refusal& refusal : WhyLeftToDaemon(session.settings().state_dir, *group.group, function)) {
      line.reasons.push_back(std::move(refusal));
    }
  }
  if (group.verdict == Verdict::kUnselected) {
    line.reasons = WhyUnselected(picture.facts, session.config().policy, group);
  }
  if (!line.reasons.empty()) {
    line.result = Result::kRefused;
  } else if (group.verdict == Verdict::kBind) {
    line.result = Result::kBound;
  }
  return line;
}

Refusal Failure(const JobEvent& event, const Session& session) {
  Refusal failure{.code = event.code,
                  .group = event.job.group,
                  .text = Message(event.status),
                  .remedy = RemedyOf(event)};
  if (event.done < event.job.actions.size()) {
    const Action& action = event.job.actions[event.done];
    if (const PciAddress* address = DeviceOf(action)) failure.address = *address;
    failure.text = absl::StrFormat("step %d of %d, `%s`: %s", event.done + 1,
                                   event.job.actions.size(), ToShell(action), failure.text);
  }
  // In a copy it would be the same line for each group, and is in the answer.
  if (IsCopy(session.tree())) return failure;
  UseReader reader;
  Log(JobEnded(event, {.now = DriversNow(session.tree(), event.job),
                       .holder = HoldersNow(session.tree(), event, reader),
                       .next = event.undone      ? "what was moved is back"
                               : event.done == 0 ? "nothing was changed"
                                                 : "left as it is now"}));
  return failure;
}

void TakeFailure(const JobEvent& event, const Session& session, std::vector<Line>& lines) {
  const auto line = std::ranges::find_if(
      lines, [&event](const Line& l) { return JobKey(*l.group) == event.job.group; });
  if (event.no_room) {
    line->result = Result::kNoRoom;
    return;
  }
  // A holder that only the kernel knew of: refused like the others.
  line->result = event.code == Code::kHeld ? Result::kRefused : Result::kFailed;
  line->reasons.push_back(Failure(event, session));
}

void Carry(std::vector<Line>& lines, Session& session, const Picture& picture) {
  std::vector<Job> jobs;
  const std::string boot_id = session.OpenJournal().boot_id();
  for (const Line& line : lines) {
    // That there is no room for more is news also where nothing is to be done.
    const bool to_tell = line.result == Result::kBound || line.group->makes_mdevs;
    if (!to_tell || line.result == Result::kRefused) continue;
    for (const Refusal& warning : line.group->warnings) Log(WarningSeen(warning));
    if (line.result != Result::kBound) continue;
    jobs.push_back(MakeBindJob(*line.group, picture.facts, picture.custody, boot_id));
  }
  // What was cut off half-way, be it on its way back, and is bound all the same: taken for good.
  for (Job& job : FinishedWork(picture)) {
    const bool asked = std::ranges::any_of(lines, [&job](const Line& line) {
      return line.result == Result::kAlready && JobKey(*line.group) == job.group;
    });
    if (asked) jobs.push_back(std::move(job));
  }
  const auto object = [&session](const Job& job) {
    return TakesVgpuAway(job) ? WhyLeftToDaemon(session.settings().state_dir, job.group,
                                                *DeviceOf(job.actions.front()))
                              : std::vector<Refusal>();
  };
  for (const JobEvent& event : RunJobs(std::move(jobs), session, object)) {
    if (!event.status.ok()) TakeFailure(event, session, lines);
  }
}

// That a card has no room for more vGPUs is a warning of its physical function, which has no line.
// How many it has room for is known once it is full: then `picture` is old.
void TellCards(Session& session, const Picture& picture, const std::vector<Line>& lines) {
  const bool full = std::ranges::count(lines, Result::kNoRoom, &Line::result) > 0;
  const std::unique_ptr<Picture> last = full ? TakeOrPrint(session) : nullptr;
  const Picture& now = last == nullptr ? picture : *last;
  for (const GroupPlan& group : now.plan.groups) {
    const bool asked = std::ranges::any_of(lines, [&](const Line& line) {
      return IsVfOf(picture, *line.group, group) && !line.group->vgpu_type.empty();
    });
    if (!asked) continue;
    for (const Refusal& warning : group.warnings) Log(WarningSeen(warning));
  }
}

bool Has(const std::vector<Line>& lines, const PciAddress& address) {
  return std::ranges::any_of(lines, [&address](const Line& line) {
    return std::ranges::count(line.group->members, address, &Member::address) > 0;
  });
}

void PrintText(const std::vector<Line>& lines) {
  for (const Line& line : lines) {
    std::string members;
    for (const Member& member : line.group->members) {
      if (member.role != Role::kBridge) members += " " + member.address.ToString();
    }
    std::cout << absl::StrFormat(
        "%s: %s%s%s:%s\n",
        line.group->group ? absl::StrFormat("group %d", *line.group->group) : "no group",
        Word(line), line.group->resource.empty() ? "" : " ", line.group->resource, members);
    for (const Refusal& reason : line.reasons) std::cout << RefusalText(reason, "  ");
  }
  if (lines.empty()) std::cout << "nothing on this node is selected\n";
}

void PrintJson(const std::vector<Line>& lines, Output output) {
  Json groups = Json::array();
  for (const Line& line : lines) {
    Json reasons = Json::array();
    for (const Refusal& reason : line.reasons) reasons.push_back(RefusalToJson(reason));
    groups.push_back({{"group", line.group->group ? Json(*line.group->group) : Json(nullptr)},
                      {"resource", line.group->resource},
                      {"result", std::string(Word(line.result))},
                      {"refusals", reasons}});
  }
  const Json document = {{"schema", "vfio-agent/bind/v1"}, {"groups", groups}};
  PrintDocument(document, output);
}

int ExitOf(const std::vector<Line>& lines) {
  const auto any = [&lines](Result result) {
    return std::ranges::count(lines, result, &Line::result) > 0;
  };
  if (any(Result::kFailed)) return kExitFailed;
  return any(Result::kRefused) ? kExitRefused : kExitDone;
}

// Of the physical functions of `targets` that are not refused, and of those whose VFs were made.
bool IsOfVf(const Picture& picture, const GroupPlan& group,
            const std::vector<const GroupPlan*>& targets, const std::vector<Line>& made) {
  return std::ranges::any_of(group.members, [&](const Member& member) {
    const PciDevice* const device = FindDevice(picture.facts, member.address);
    if (device == nullptr || !device->physfn) return false;
    return Has(made, *device->physfn) ||
           std::ranges::any_of(targets, [device](const GroupPlan* target) {
             return IsPhysical(*target) && target->verdict != Verdict::kRefused &&
                    std::ranges::count(target->members, *device->physfn, &Member::address) > 0;
           });
  });
}

// What is asked for, as `picture` has it; with a physical function its VFs.
absl::StatusOr<std::vector<Line>> JudgeTargets(const Picture& picture, const Session& session,
                                               const std::vector<Line>& made) {
  ASSIGN_OR_RETURN(std::vector<const GroupPlan*> targets,
                   FindTargets(picture, session.invocation().arguments));
  const std::vector<const GroupPlan*> asked = targets;
  for (const GroupPlan& group : picture.plan.groups) {
    if (group.resource.empty() || !IsOfVf(picture, group, asked, made)) continue;
    if (!std::ranges::count(targets, &group)) targets.push_back(&group);
  }
  std::vector<Line> lines;
  for (const GroupPlan* group : targets) {
    // What was taken away can be followed by what is set; nothing else is done twice.
    const bool anew =
        group->verdict == Verdict::kBind && !IsPhysical(*group) && !TakesVgpuAway(*group);
    const bool done = !anew && std::ranges::any_of(group->members, [&made](const Member& member) {
      return Has(made, member.address);
    });
    if (!done) lines.push_back(Judge(picture, session, *group));
  }
  return lines;
}

// First those whose virtual functions are to be made, and those whose vGPU type is to be taken
// away: only then can these be bound, or others set.
std::vector<Line> MakeRoom(Session& session, const Picture& picture, std::vector<Line> lines) {
  std::erase_if(lines, [](const Line& line) {
    return line.result != Result::kBound ||
           !(IsPhysical(*line.group) || TakesVgpuAway(*line.group));
  });
  if (!lines.empty()) Carry(lines, session, picture);
  return lines;
}

}  // namespace

int BindCommand(Session& session) {
  const std::unique_ptr<Picture> first = TakeOrPrint(session);
  if (first == nullptr) return kExitFailed;
  absl::StatusOr<std::vector<Line>> targets = JudgeTargets(*first, session, {});
  if (!targets.ok()) {
    PrintError(Message(targets.status()));
    return kExitUsage;
  }
  std::vector<Line> lines = *std::move(targets);
  SetAsideOrPrint(session, *first);
  const std::vector<Line> made = MakeRoom(session, *first, lines);
  const std::unique_ptr<Picture> second = made.empty() ? nullptr : TakeOrPrint(session);
  if (!made.empty() && second == nullptr) return kExitFailed;
  if (second != nullptr) {
    targets = JudgeTargets(*second, session, made);
    if (targets.ok()) lines = *std::move(targets);
  }
  const Picture& picture = second == nullptr ? *first : *second;
  Carry(lines, session, picture);
  TellCards(session, picture, lines);
  lines.insert(lines.begin(), made.begin(), made.end());
  const Output output = session.invocation().output;
  IsDocument(output) ? PrintJson(lines, output) : PrintText(lines);
  return ExitOf(lines);
}

}  // namespace vfio_agent
