// The part of Agent that has the kernel written to.
#include <poll.h>

#include <algorithm>

#include "absl/strings/str_format.h"
#include "agent/daemon/agent.h"
#include "agent/daemon/report.h"
#include "agent/exit_code.h"
#include "agent/work/holders_now.h"
#include "agent/work/vgpu_card.h"
#include "agent/work/work.h"
#include "sysfs/clock.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

constexpr absl::Duration kOtherAtWork = absl::Seconds(1);
// From a signal to the end: two seconds with what is on the way. Less than what a pod has.
constexpr absl::Duration kGrace = absl::Milliseconds(1900);
constexpr absl::Duration kGraceToRelease = absl::Seconds(20);

}  // namespace

// Where the end is to release, it waits for the loop, which may be in the middle of a picture.
void Agent::SetGrace() {
  const bool releases = session_.settings().on_exit == OnExit::kRelease;
  Signals::SetGrace(releases ? kGraceToRelease : kGrace, releases ? kExitFailed : kExitDone);
}

// What is half-way can only be released once it has arrived.
void Agent::FinishJobs() {
  Signals::LiftDeadline();
  const absl::Time end = MonotonicNow() + session_.settings().unbind_timeout;
  while (jobs_.active() > 0 && MonotonicNow() < end) {
    pollfd ready = {.fd = jobs_.fd(), .events = POLLIN};
    ::poll(&ready, 1, 100);
    for (const JobEvent& event : jobs_.Poll(MonotonicNow())) OnJobEvent(event, MonotonicNow());
  }
}

// When a group that waits for its next try can have it; a job's end wakes the loop by itself.
absl::Time Agent::NextRetry() const {
  absl::Time next = absl::InfiniteFuture();
  if (jobs_.active() >= static_cast<size_t>(session_.settings().parallel)) return next;
  for (const Job& job : work_) {
    if (jobs_.Has(job.group) || WaitsForCard(job, jobs_, session_.tree())) continue;
    next = std::min(next, retries_.NextTry(job.group));
  }
  return next;
}

void Agent::StartJobs(absl::Time now) {
  // A picture that a finished job has made old says nothing of what is to be done next.
  if (pictures_.asked()) return;
  std::erase_if(work_, [&](const Job& job) {
    if (jobs_.active() >= static_cast<size_t>(session_.settings().parallel)) return false;
    if (jobs_.Has(job.group) || retries_.NextTry(job.group) > now) return false;
    if (WaitsForCard(job, jobs_, session_.tree())) return false;
    return StartJob(job, now);
  });
}

// False where it has to be tried again later.
bool Agent::StartJob(const Job& job, absl::Time now) {
  // Given to a pod since the picture was taken, which the next one knows.
  if (job.kind == JobKind::kRelease &&
      std::ranges::count(ledger_->Grants(), job.group, &Grant::group) > 0) {
    Ask("allocate");
    return true;
  }
  const absl::Status status = jobs_.Start(job, now);
  if (absl::IsUnavailable(status)) {
    // A child of the agent before this one, or somebody's bind: it ends by itself.
    if (retries_.IsNews(job.group, "wait")) Say(Note(Message(status)));
    retries_.Wait(job.group, now + kOtherAtWork);
    return false;
  }
  if (status.ok()) {
    const bool news = retries_.IsNews(job.group, "start") || !job.overruled.empty();
    if (!job.actions.empty() && news) Say(JobStarted(job));
    return true;
  }
  OnJobEvent({.job = job,
              .status = Annotate(status, "nothing was written"),
              .code = Code::kPermissionDenied,
              .remedy = kStateRemedy},
             now);
  return true;
}

void Agent::OnJobEvent(const JobEvent& event, absl::Time now) {
  Ask("job");
  book_.JobEnded(event);
  const int group = event.job.group;
  std::string next = "group withdrawn until the kernel returns";
  if (event.kind == JobEvent::Kind::kFinished && event.status.ok()) {
    retries_.Succeeded(group);
    if (event.job.actions.empty()) return Say(Recovered(event.job));
  } else if (event.kind == JobEvent::Kind::kFinished) {
    const absl::Duration wait = retries_.Failed(group, now);
    next = absl::StrFormat("%stried again in %s", event.undone ? "put back; " : "",
                           absl::FormatDuration(absl::Ceil(wait, absl::Milliseconds(100))));
    if (event.cut_off) next = "read again, then finished or put back";
  }
  // The next tries say nothing as long as nothing else comes of them.
  if (!event.status.ok() && !retries_.IsNews(group, FailureOf(event))) {
    return cluster_.Saw(JobEnded(event, {.next = next}), true);
  }
  Say(JobEnded(event, {.now = DriversNow(session_.tree(), event.job),
                       .holder = HoldersNow(session_.tree(), event, uses_),
                       .next = next}));
}

}  // namespace vfio_agent
