#include "agent/agent.h"

#include <malloc.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "agent/exit_code.h"
#include "agent/log.h"
#include "agent/one_shot.h"
#include "agent/report.h"
#include "iommu/release.h"
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

// Blocked before any thread starts, so that all signals come to the loop.
absl::StatusOr<Fd> OpenSignals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&set, number);
  const int error = ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  if (error != 0) return ErrnoStatus(error, "block signals");
  Fd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return ErrnoStatus("signalfd");
  return fd;
}

Jobs::Limits LimitsOf(const Settings& settings) {
  return {.step = settings.unbind_timeout, .node = settings.node_timeout};
}

}  // namespace

Agent::Agent(Session& session)
    : session_(session),
      jobs_(session.tree().root(), LimitsOf(session.settings())),
      origins_(OpenOrigins(session)) {}

absl::Status Agent::Open() {
  ASSIGN_OR_RETURN(signals_, OpenSignals());
  RETURN_IF_ERROR(loop_.Open());
  plugins_ = std::make_unique<Plugins>(
      Plugins::Options{.dir = session_.settings().device_plugin_dir, .tree = &session_.tree()},
      [this] { loop_.Wake(); });
  loop_.Watch(signals_.get(), [this] { OnSignal(); });
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
  return exit_code_;
}

void Agent::OnSignal() {
  signalfd_siginfo info = {};
  while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    if (info.ssi_signo == SIGHUP) {
      Reload();
    } else {
      const bool keep = session_.settings().on_exit == OnExit::kKeep;
      Log(AgentStopping(info.ssi_signo == SIGTERM ? "SIGTERM" : "SIGINT",
                        keep ? "devices stay bound" : "what nobody holds is released"));
      loop_.Stop();
    }
  }
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
    return !to_bind.contains(entry.first) && entry.second.undo.empty() && !jobs_.Has(entry.first);
  });
}

void Agent::Turn() {
  absl::Time now = absl::Now();
  for (const JobEvent& event : jobs_.Poll(now)) OnJobEvent(event, now);
  const absl::Duration since = now - last_reconcile_;
  if ((changed_ && since >= kBreath) || since >= session_.settings().resync) Reconcile(now);
  now = absl::Now();  // reading took a while, which is not to count against a job's deadline
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
  const auto to_undo = [](const auto& entry) { return !entry.second.undo.empty(); };
  return std::ranges::count(picture_->plan.groups, Verdict::kBind, &GroupPlan::verdict) > 0 ||
         std::ranges::any_of(groups_, to_undo);
}

void Agent::StartJobs(absl::Time now) {
  // A picture that a finished job has made old says nothing of what is to be done next.
  if (!picture_ || changed_) return;
  for (auto& [group, state] : groups_) {
    if (!state.undo.empty() && !jobs_.Has(group)) StartUndo(group, state, now);
  }
  for (const GroupPlan& group : picture_->plan.groups) {
    if (jobs_.active() >= static_cast<size_t>(session_.settings().parallel)) return;
    if (group.verdict != Verdict::kBind || jobs_.Has(*group.group)) continue;
    GroupState& state = groups_[*group.group];
    if (state.next_try <= now && state.undo.empty()) StartBind(group, now);
  }
}

void Agent::StartBind(const GroupPlan& group, absl::Time now) {
  Job job{.group = *group.group, .actions = group.actions};
  absl::Status status = NoteOrigins(job.actions, picture_->facts, origins_);
  if (status.ok()) {
    Log(BindStarted(job));
    status = jobs_.Start(job, now);
  }
  if (status.ok()) return;
  const Code code =
      absl::IsPermissionDenied(status) ? Code::kPermissionDenied : Code::kOverrideUnsupported;
  OnJobEvent({.job = job, .status = Annotate(status, "nothing was written"), .code = code}, now);
}

void Agent::StartUndo(int group, GroupState& state, absl::Time now) {
  std::vector<std::string> bad;
  const absl::StatusOr<Origins> origins = origins_.Read(bad);
  Job job{.group = group, .kind = JobKind::kRelease};
  if (origins.ok()) job.actions = PlanUndo(picture_->facts, *origins, state.undo);
  state.undo.clear();
  if (job.actions.empty()) return;
  Log(BindStarted(job));
  if (const absl::Status status = jobs_.Start(job, now); !status.ok()) {
    OnJobEvent({.job = job, .status = status}, now);
  }
}

void Agent::OnJobEvent(const JobEvent& event, absl::Time now) {
  GroupState& state = groups_[event.job.group];
  changed_ = true;
  const bool bind = event.job.kind == JobKind::kBind;
  if (bind && !event.status.ok()) return OnBindFailed(event, state, now);
  static const NodeFacts kNone;
  Log(JobEnded(event, picture_ ? picture_->facts : kNone, "left as it is"));
  if (bind) state = {};
  if (!bind && event.status.ok()) {
    if (const absl::Status status = ForgetOrigins(event.job.actions, origins_); !status.ok()) {
      Log(Note(Message(status)));
    }
  }
}

void Agent::OnBindFailed(const JobEvent& event, GroupState& state, absl::Time now) {
  std::string next = "group withdrawn until the kernel returns";
  if (event.kind == JobEvent::Kind::kFinished) {
    ++state.failures;
    const absl::Duration wait = RetryAfter(state.failures);
    state.next_try = now + wait;
    if (event.done > 0) state.undo = MovedBy(event.job.actions);
    next = absl::StrFormat("put back; tried again in %s", absl::FormatDuration(wait));
  }
  static const NodeFacts kNone;
  Log(JobEnded(event, picture_ ? picture_->facts : kNone, next));
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
