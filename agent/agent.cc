#include "agent/agent.h"

#include <malloc.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "absl/strings/str_format.h"
#include "agent/exit_code.h"
#include "agent/log.h"
#include "agent/one_shot.h"
#include "agent/report.h"
#include "sysfs/clock.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

// A storm of events costs at most one picture in this time.
constexpr absl::Duration kBreath = absl::Milliseconds(50);
constexpr absl::Duration kShutdown = absl::Seconds(1);
constexpr absl::Duration kFirstRetry = absl::Seconds(1);
constexpr absl::Duration kLastRetry = absl::Minutes(5);

absl::Duration RetryAfter(int failures) {
  return std::min(kFirstRetry * (1 << std::min(failures - 1, 16)), kLastRetry);
}

Jobs::Limits LimitsOf(const Settings& settings) {
  return {.step = settings.unbind_timeout, .node = settings.node_timeout};
}

}  // namespace

Agent::Agent(Session& session)
    : session_(session),
      jobs_(session.tree().root(), session.settings().state_dir, LimitsOf(session.settings())),
      origins_(OpenOrigins(session)) {}

absl::Status Agent::Open() {
  RETURN_IF_ERROR(signals_.Install());
  RETURN_IF_ERROR(loop_.Open());
  plugins_ = std::make_unique<Plugins>(
      Plugins::Options{.dir = session_.settings().device_plugin_dir, .tree = &session_.tree()},
      [this] { loop_.Wake(); });
  loop_.Watch(signals_.fd(), [this] { OnSignal(); });
  loop_.Watch(jobs_.fd(), [] {});  // Turn() polls the jobs
  loop_.Watch(plugins_->watch_fd(), [this] { plugins_->OnWatch(); });
  // The kernel speaks of its own devices only: of no use for another root.
  if (!session_.tree().is_host()) return absl::OkStatus();
  absl::StatusOr<Uevents> uevents = Uevents::Open();
  if (!uevents.ok()) {
    Log(UeventsUnavailable(Message(uevents.status())));
    return absl::OkStatus();
  }
  uevents_ = *std::move(uevents);
  loop_.Watch(uevents_->fd(), [this] { changed_ = uevents_->Drain() > 0 || changed_; });
  return absl::OkStatus();
}

int Agent::Run() {
  if (const absl::Status status = Open(); !status.ok()) {
    Log(ReadFailed(Message(status)));
    return kExitFailed;
  }
  Log(AgentStarted(session_));
  loop_.Run([this] { return Deadline(); }, [this] { Turn(); });
  plugins_->Shutdown(kShutdown);
  if (session_.settings().on_exit == OnExit::kRelease) FinishJobs();
  return exit_code_;
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

void Agent::OnSignal() {
  const Signals::Seen seen = signals_.Take();
  if (seen.reload) Reload();
  if (!seen.terminate && !seen.interrupt) return;
  const bool keep = session_.settings().on_exit == OnExit::kKeep;
  Log(AgentStopping(seen.terminate ? "SIGTERM" : "SIGINT",
                    keep ? "devices stay bound" : "what nobody holds is released"));
  loop_.Stop();
}

void Agent::Reload() {
  if (const absl::Status status = session_.Reload(); !status.ok()) {
    Log(ConfigRejected(Message(status)));
    return;
  }
  Log(ConfigReloaded(session_.config().file_name));
  jobs_.SetLimits(LimitsOf(session_.settings()));
  for (auto& entry : groups_) entry.second.next_try = absl::InfinitePast();
  changed_ = true;
}

absl::Time Agent::Deadline() const {
  const absl::Time next = std::min(jobs_.NextDeadline(), plugins_->NextDeadline());
  if (changed_) return std::min(next, last_reconcile_ + kBreath);
  return std::min({next, last_reconcile_ + session_.settings().resync, NextRetry()});
}

// When a group that waits for its next try can have it; a job's end wakes the loop by itself.
absl::Time Agent::NextRetry() const {
  absl::Time next = absl::InfiniteFuture();
  if (!picture_) return next;  // nothing can be started from what could not be read
  if (jobs_.active() >= static_cast<size_t>(session_.settings().parallel)) return next;
  for (const auto& [group, state] : groups_) {
    if (state.failures > 0 && !jobs_.Has(group)) next = std::min(next, state.next_try);
  }
  return next;
}

// What is no longer to be bound has no next try.
void Agent::ForgetFinishedGroups() {
  std::set<int> to_bind;
  for (const GroupPlan& group : picture_->plan.groups) {
    if (group.verdict == Verdict::kBind) to_bind.insert(*group.group);
  }
  std::erase_if(groups_, [&](const auto& entry) {
    return !to_bind.contains(entry.first) && !jobs_.Has(entry.first);
  });
}

void Agent::Turn() {
  absl::Time now = MonotonicNow();
  for (const JobEvent& event : jobs_.Poll(now)) OnJobEvent(event, now);
  const absl::Duration since = now - last_reconcile_;
  if ((changed_ && since >= kBreath) || since >= session_.settings().resync) Reconcile(now);
  now = MonotonicNow();  // reading took a while, which is not to count against a job's deadline
  StartJobs(now);
  StepPlugins(now);
}

void Agent::Reconcile(absl::Time now) {
  changed_ = false;
  last_reconcile_ = now;
  picture_.reset();  // two at once would double the memory of a large node
  std::vector<std::string> notes;
  absl::StatusOr<Picture> picture = session_.Take(notes);
  if (!picture.ok()) {
    const std::string error = Message(picture.status());
    if (error != last_read_error_) Log(ReadFailed(error));
    last_read_error_ = error;
    return;
  }
  last_read_error_.clear();
  picture_ = *std::move(picture);
  for (const Event& event : transitions_.Compare(*picture_, notes)) Log(event);
  offers_ = MakeOffers(picture_->plan, picture_->facts, offers_);
  plugins_->Set(offers_);
  ForgetFinishedGroups();
  // What is served needs the offers only. A picture is made of many small pieces: give them back.
  if (!HasWork()) picture_.reset();
  ::malloc_trim(0);
}

bool Agent::HasWork() const {
  return std::ranges::count(picture_->plan.groups, Verdict::kBind, &GroupPlan::verdict) > 0;
}

void Agent::StartJobs(absl::Time now) {
  // A picture that a finished job has made old says nothing of what is to be done next.
  if (!picture_ || changed_) return;
  for (const GroupPlan& group : picture_->plan.groups) {
    if (jobs_.active() >= static_cast<size_t>(session_.settings().parallel)) return;
    if (group.verdict != Verdict::kBind || jobs_.Has(*group.group)) continue;
    GroupState& state = groups_[*group.group];
    if (state.next_try <= now) StartBind(group, state, now);
  }
}

void Agent::StartBind(const GroupPlan& group, GroupState& state, absl::Time now) {
  Job job{.group = *group.group, .actions = group.actions};
  absl::Status status = NoteOrigins(job.actions, picture_->facts, origins_);
  if (status.ok()) status = AddOrigins(job, origins_);
  if (status.ok()) status = jobs_.Start(job, now);
  if (status.ok()) {
    Log(BindStarted(job));
  } else if (absl::IsUnavailable(status)) {
    // A child of the agent before this one, or somebody's bind: it ends by itself.
    if (!state.waits_for_other) Log(Note(Message(status)));
    state = {.failures = 1, .next_try = now + kFirstRetry, .waits_for_other = true};
  } else {
    OnJobEvent({.job = job,
                .status = Annotate(status, "nothing was written"),
                .code = Code::kPermissionDenied,
                .remedy = kStateRemedy},
               now);
  }
}

void Agent::OnJobEvent(const JobEvent& event, absl::Time now) {
  GroupState& state = groups_[event.job.group];
  changed_ = true;
  if (!event.status.ok()) return OnBindFailed(event, state, now);
  static const NodeFacts kNone;
  Log(JobEnded(event, picture_ ? picture_->facts : kNone, ""));
  state = {};
}

void Agent::OnBindFailed(const JobEvent& event, GroupState& state, absl::Time now) {
  std::string next = "group withdrawn until the kernel returns";
  if (event.kind == JobEvent::Kind::kFinished) {
    ++state.failures;
    const absl::Duration wait = RetryAfter(state.failures);
    state.next_try = now + wait;
    next = absl::StrFormat("%stried again in %s", event.undone ? "put back; " : "",
                           absl::FormatDuration(wait));
  }
  static const NodeFacts kNone;
  Log(JobEnded(event, picture_ ? picture_->facts : kNone, next));
  if (!event.undone) return;
  if (const absl::Status status = ForgetOrigins(event.job.actions, origins_); !status.ok()) {
    Log(Note(Message(status)));
  }
}

void Agent::StepPlugins(absl::Time now) {
  for (const PluginEvent& event : plugins_->Step(now)) {
    Log(PluginSeen(event));
    if (event.kind != PluginEvent::Kind::kDirectoryReplaced) continue;
    // A mount in a pod goes on showing the old directory: only a new container sees the new one.
    Log(AgentStopping("the kubelet's directory was replaced", "a restart sees the new one"));
    exit_code_ = kExitFailed;
    loop_.Stop();
  }
}

}  // namespace vfio_agent
