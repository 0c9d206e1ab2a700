#include "agent/work/one_shot.h"

#include <poll.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "agent/live.h"
#include "agent/text/terminal.h"
#include "agent/work/vgpu_card.h"
#include "iommu/plan/job_key.h"
#include "sysfs/clock.h"
#include "sysfs/paths.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

constexpr size_t kMostNamed = 4;
constexpr absl::Duration kTick = absl::Seconds(1);  // of a line that counts the seconds
constexpr absl::Duration kLongest = absl::Minutes(1);

void WaitFor(const Jobs& jobs, absl::Duration longest) {
  const absl::Duration left = std::min(jobs.NextDeadline() - MonotonicNow(), longest);
  const int64_t wait_ms = std::clamp<int64_t>(absl::ToInt64Milliseconds(left) + 1, 0, 60'000);
  pollfd ready = {.fd = jobs.fd(), .events = POLLIN};
  ::poll(&ready, 1, static_cast<int>(wait_ms));
}

// Nothing was written: somebody else is at work on the group, or its lock cannot be had.
JobEvent NotStarted(const Job& job, const absl::Status& status) {
  const bool other = absl::IsUnavailable(status);
  return {.job = job,
          .status = status,
          .code = other ? Code::kForeignManager : Code::kPermissionDenied,
          .remedy = other ? "wait for it to end, then try again" : kStateRemedy};
}

JobEvent OnCopy(const Job& job, const std::string& root) {
  return {
      .job = job,
      .status = absl::FailedPreconditionError(absl::StrFormat(
          "%s is a copy: no kernel acts on what is written there, so nothing was written", root)),
      .code = Code::kProbeRefused,
      .remedy = "run this on the node itself; `plan` shows on a copy what would be written"};
}

// "5", or the address of what has no group.
void AddKey(std::string* out, int key) {
  const std::optional<PciAddress> lone = ParentOfKey(key);
  out->append(lone ? lone->ToString() : absl::StrFormat("%d", key));
}

JobEvent NoRoom(const Job& job) {
  return {.job = job,
          .status = absl::FailedPreconditionError(
              "the card has no room for the vGPU type any more; nothing was written"),
          .code = Code::kProbeRefused,
          .no_room = true};
}

JobEvent Refused(const Job& job, const Refusal& refusal) {
  return {.job = job,
          .status = absl::FailedPreconditionError(refusal.text),
          .code = refusal.code,
          .remedy = refusal.remedy};
}

// One run: what waits, and what has come of the others.
struct Run {
  const Objections& object;
  std::vector<Job> waiting;
  std::vector<JobEvent> events;
};

// Starts as many as may be at work beside each other.
void StartSome(Run& run, size_t parallel, Jobs& jobs, VgpuCards& cards, const Tree& tree) {
  std::erase_if(run.waiting, [&](const Job& job) {
    if (jobs.active() >= parallel || WaitsForCard(job, jobs, tree)) return false;
    if (cards.IsFull(job)) {
      run.events.push_back(NoRoom(job));
      return true;
    }
    if (const std::vector<Refusal> refusals = run.object(job); !refusals.empty()) {
      run.events.push_back(Refused(job, refusals.front()));
      return true;
    }
    const absl::Status started = jobs.Start(job, MonotonicNow());
    if (!started.ok()) run.events.push_back(NotStarted(job, started));
    return true;
  });
}

}  // namespace

std::string ProgressText(const Progress& progress) {
  std::vector<int> groups(progress.at_work.begin(), progress.at_work.end());
  std::string text = absl::StrFormat("%d of %d groups done", progress.done, progress.all);
  if (groups.empty()) return text;
  const bool many = groups.size() > kMostNamed;
  if (many) groups.resize(kMostNamed);
  return absl::StrFormat("%s, %ds: writing to group %s%s", text,
                         absl::ToInt64Seconds(progress.took), absl::StrJoin(groups, ", ", AddKey),
                         many ? " and others" : "");
}

std::vector<JobEvent> RunJobs(std::vector<Job> list, const Session& session,
                              const Objections& object) {
  const Settings& settings = session.settings();
  const Tree& tree = session.tree();
  Jobs jobs(tree.root(), settings.state_dir, session.OpenJournal(), LimitsOf(settings));
  Run run{.object = object};
  if (IsCopy(tree)) {
    for (const Job& job : list) run.events.push_back(OnCopy(job, tree.root()));
    return std::move(run.events);
  }
  const size_t all = list.size();
  run.waiting = std::move(list);
  std::ranges::stable_sort(run.waiting, {}, VgpuFunctionOf);
  VgpuCards cards(tree);
  ProgressLine line;
  const absl::Time begun = MonotonicNow();
  while (!run.waiting.empty() || jobs.active() > 0) {
    StartSome(run, static_cast<size_t>(settings.parallel), jobs, cards, tree);
    if (jobs.active() > 0) {
      line.Show(ProgressText({.done = all - run.waiting.size() - jobs.active(),
                              .all = all,
                              .at_work = jobs.Underway().at_work,
                              .took = MonotonicNow() - begun}));
      WaitFor(jobs, line.visible() ? kTick : kLongest);
    }
    for (JobEvent& event : jobs.Poll(MonotonicNow())) {
      // What comes after a deadline belongs to the one event that told of it.
      if (event.kind == JobEvent::Kind::kStuck || event.cut_off) continue;
      run.events.push_back(std::move(event));
    }
  }
  return std::move(run.events);
}

}  // namespace vfio_agent
