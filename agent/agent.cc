#include "agent/agent.h"

#include <malloc.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_format.h"
#include "agent/exit_code.h"
#include "agent/log.h"
#include "agent/report.h"
#include "agent/work.h"
#include "sysfs/clock.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

constexpr absl::Duration kShutdown = absl::Seconds(1);
// How often an agent that waits looks whether the one before it has gone.
constexpr absl::Duration kLockPoll = absl::Milliseconds(200);
// How soon is looked again at what did not answer; then ever later.
constexpr absl::Duration kFirstLook = absl::Seconds(1);
constexpr absl::Duration kOtherAtWork = absl::Seconds(1);

Jobs::Limits LimitsOf(const Settings& settings) {
  return {.step = settings.unbind_timeout, .node = settings.node_timeout};
}

// Where the kubelet's plugin watcher is to find us; "" where we call instead.
std::string RegistryDir(const Settings& settings) {
  if (settings.registering == Registering::kSocket) return "";
  return settings.kubelet_root_dir + "/plugins_registry";
}

}  // namespace

Agent::Agent(Session& session)
    : session_(session),
      lock_(session.settings().state_dir),
      nodes_(session.tree()),
      jobs_(session.tree().root(), session.settings().state_dir, session.OpenJournal(),
            LimitsOf(session.settings())),
      answers_file_(session.settings().state_dir),
      retries_(static_cast<unsigned>(::getpid())),
      look_wait_(kFirstLook) {}

// True once this is the only agent of the node; false where it was told to end before.
bool Agent::TakeNode() {
  absl::Status status = lock_.TryTake();
  if (absl::IsUnavailable(status)) {
    Log(AgentWaiting(lock_.holder()));
    loop_.Run([] { return MonotonicNow() + kLockPoll; },
              [&] {
                status = lock_.TryTake();
                if (!absl::IsUnavailable(status)) loop_.Stop();
              });
  }
  if (terminated_) return false;
  // What is bound can be served all the same; nothing new is written without a journal.
  if (!status.ok()) Log(Note(Message(status) + ": " + kStateRemedy));
  return true;
}

absl::Status Agent::Open() {
  absl::StatusOr<Answers> answers = answers_file_.Read();
  if (!answers.ok()) Log(Note(Message(answers.status())));
  ledger_ = std::make_unique<Ledger>(answers.ok() ? *std::move(answers) : Answers());
  plugins_ =
      std::make_unique<Plugins>(Plugins::Options{.dir = session_.settings().device_plugin_dir,
                                                 .registry_dir = RegistryDir(session_.settings()),
                                                 .tree = &session_.tree(),
                                                 .ledger = ledger_.get()},
                                [this] { loop_.Wake(); });
  loop_.Watch(jobs_.fd(), [] {});  // Turn() polls the jobs
  loop_.Watch(plugins_->watch_fd(), [this] { plugins_->OnWatch(); });
  loop_.Watch(nodes_.fd(), [this] {
    if (nodes_.Drain()) pictures_.Ask();
  });
  // The kernel speaks of its own devices only: of no use for another root.
  if (!session_.tree().is_host()) return absl::OkStatus();
  absl::StatusOr<Uevents> uevents = Uevents::Open();
  if (!uevents.ok()) {
    Log(UeventsUnavailable(Message(uevents.status())));
    return absl::OkStatus();
  }
  uevents_ = *std::move(uevents);
  loop_.Watch(uevents_->fd(), [this] {
    if (uevents_->Drain() > 0) pictures_.Ask();
  });
  return absl::OkStatus();
}

int Agent::Run() {
  absl::Status status = signals_.Install();
  if (status.ok()) status = loop_.Open();
  if (status.ok()) {
    loop_.Watch(signals_.fd(), [this] { OnSignal(); });
    has_node_ = TakeNode();
    if (!has_node_) return kExitDone;
    status = Open();
  }
  if (!status.ok()) {
    Log(ReadFailed(Message(status)));
    return kExitFailed;
  }
  Log(AgentStarted(session_));
  loop_.Run([this] { return Deadline(); }, [this] { Turn(); });
  plugins_->Shutdown(kShutdown);
  if (session_.settings().on_exit != OnExit::kRelease) return exit_code_;
  FinishJobs();
  if (exit_code_ == kExitDone) WriteCdi({});  // what leads to devices goes before them
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
  terminated_ = true;
  loop_.Stop();
}

void Agent::Reload() {
  if (const absl::Status status = session_.Reload(); !status.ok()) {
    Log(ConfigRejected(Message(status)));
    return;
  }
  Log(ConfigReloaded(session_.config().file_name));
  jobs_.SetLimits(LimitsOf(session_.settings()));
  retries_.Reset();
  pictures_.Ask();
}

absl::Time Agent::Deadline() const {
  const absl::Time next = std::min(
      {jobs_.NextDeadline(), plugins_->NextDeadline(), pictures_.Next(session_.settings().resync)});
  // A new picture will tell anew what is to be tried again.
  return pictures_.asked() ? next : std::min({next, NextRetry(), look_again_, tenants_.due()});
}

// When a group that waits for its next try can have it; a job's end wakes the loop by itself.
absl::Time Agent::NextRetry() const {
  absl::Time next = absl::InfiniteFuture();
  if (jobs_.active() >= static_cast<size_t>(session_.settings().parallel)) return next;
  for (const Job& job : work_) {
    if (!jobs_.Has(job.group)) next = std::min(next, retries_.NextTry(job.group));
  }
  return next;
}

void Agent::Turn() {
  absl::Time now = MonotonicNow();
  for (const JobEvent& event : jobs_.Poll(now)) OnJobEvent(event, now);
  // Nothing is tried again from an old picture.
  if (std::min({NextRetry(), look_again_, tenants_.due()}) <= now) pictures_.Ask();
  if (pictures_.Next(session_.settings().resync) <= now) Reconcile(now);
  now = MonotonicNow();  // reading took a while, which is not to count against a job's deadline
  StartJobs(now);
  StepPlugins(now);
  KeepAnswers();
}

// All that can be looked at: when it is time for that, and when nothing in particular asks for the
// picture. The first one waits for no walk over the processes: the kubelet waits for it.
Wish Agent::MakeWish(absl::Time now) const {
  const bool all = tenants_.due() <= now || (looked_ && !pictures_.asked());
  return {.underway = jobs_.Underway(),
          .grants = ledger_->Grants(),
          .tenants = all ? Wish::Tenants::kAll : Wish::Tenants::kLast};
}

// Only once the offers that follow from the picture are out: between, Allocate needs the grants.
void Agent::SettleGrants(const Wish& wish, const Picture& picture) {
  const std::vector<Grant>& open = picture.custody.tenancy->grants;
  std::vector<Grant> settled;
  std::ranges::copy_if(wish.grants, std::back_inserter(settled), [&open](const Grant& grant) {
    return std::ranges::count(open, grant) == 0;
  });
  ledger_->Drop(settled);
}

void Agent::KeepAnswers() {
  const uint64_t version = ledger_->version();
  if (version == answers_kept_) return;
  answers_kept_ = version;
  const absl::Status status = answers_file_.Write(ledger_->answers());
  if (!status.ok()) Log(Note(Message(status) + ": " + kStateRemedy));
}

void Agent::Reconcile(absl::Time now) {
  const Wish wish = MakeWish(now);
  pictures_.Begin(now);
  work_.clear();
  std::vector<std::string> notes;
  const absl::StatusOr<Picture> picture = session_.Take(notes, wish);
  pictures_.End(MonotonicNow());
  if (picture.ok()) {
    last_read_error_.clear();
    Publish(*picture, notes);
    SettleGrants(wish, *picture);
    if (!looked_) tenants_.Ask(now);
    if (wish.tenants == Wish::Tenants::kAll) tenants_.Looked(now, IsSettled(*picture, offers_));
    looked_ = true;
  } else if (const std::string error = Message(picture.status()); error != last_read_error_) {
    Log(ReadFailed(error));
    last_read_error_ = error;
  }
}

void Agent::Publish(const Picture& picture, const std::vector<std::string>& notes) {
  SetAside(picture);
  for (const Event& event : transitions_.Compare(picture, notes)) Log(event);
  const Settings& settings = session_.settings();
  std::vector<Offer> offers =
      MakeOffers(picture.plan, picture.facts, offers_,
                 {.iommufd = settings.iommufd, .cdi_names = settings.cdi_names},
                 picture.custody.tenancy ? &*picture.custody.tenancy : nullptr, MonotonicNow());
  for (const Event& event : Transitions::CompareOffers(offers_, offers)) Log(event);
  offers_ = std::move(offers);
  WriteCdi(offers_);
  plugins_->Set(offers_);
  retries_.See(picture.plan);
  work_ = PlanWork(picture, session_.OpenJournal().boot_id());
  LookAgain(picture);
  // A picture is made of many small pieces: give them back.
  ::malloc_trim(0);
}

// Before the kubelet is told: a runtime may look for a unit as soon as it can be given.
void Agent::WriteCdi(const std::vector<Offer>& offers) {
  for (const std::string& problem : cdi_.Update(session_.settings().cdi_dir, offers)) {
    Log(CdiFailed(problem));
  }
}

// Where another process is at work, or something did not say who uses what, no event will tell
// that it has come to an end.
void Agent::LookAgain(const Picture& picture) {
  if (picture.answered && picture.custody.underway.elsewhere.empty()) {
    look_again_ = absl::InfiniteFuture();
    look_wait_ = kFirstLook;
    return;
  }
  look_again_ = MonotonicNow() + look_wait_;
  look_wait_ = std::min(look_wait_ * 2, session_.settings().resync);
}

void Agent::SetAside(const Picture& picture) {
  const Journal journal = session_.OpenJournal();
  for (const Journal::Unreadable& file : picture.unreadable) {
    Log(JournalSetAside(file, journal.SetAside(file)));
  }
}

void Agent::StartJobs(absl::Time now) {
  // A picture that a finished job has made old says nothing of what is to be done next.
  if (pictures_.asked()) return;
  std::erase_if(work_, [&](const Job& job) {
    if (jobs_.active() >= static_cast<size_t>(session_.settings().parallel)) return false;
    if (jobs_.Has(job.group) || retries_.NextTry(job.group) > now) return false;
    return StartJob(job, now);
  });
}

// False where it has to be tried again later.
bool Agent::StartJob(const Job& job, absl::Time now) {
  const absl::Status status = jobs_.Start(job, now);
  if (absl::IsUnavailable(status)) {
    // A child of the agent before this one, or somebody's bind: it ends by itself.
    if (retries_.IsNews(job.group, "wait")) Log(Note(Message(status)));
    retries_.Wait(job.group, now + kOtherAtWork);
    return false;
  }
  if (status.ok()) {
    const bool news = retries_.IsNews(job.group, "start") || !job.overruled.empty();
    if (!job.actions.empty() && news) Log(JobStarted(job));
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
  pictures_.Ask();
  const int group = event.job.group;
  std::string next = "group withdrawn until the kernel returns";
  if (event.kind == JobEvent::Kind::kFinished && event.status.ok()) {
    retries_.Succeeded(group);
    if (event.job.actions.empty()) return Log(Recovered(event.job));
  } else if (event.kind == JobEvent::Kind::kFinished) {
    const absl::Duration wait = retries_.Failed(group, now);
    next = absl::StrFormat("%stried again in %s", event.undone ? "put back; " : "",
                           absl::FormatDuration(absl::Ceil(wait, absl::Milliseconds(100))));
    if (event.cut_off) next = "read again, then finished or put back";
  }
  // The next tries say nothing as long as nothing else comes of them.
  if (!event.status.ok() && !retries_.IsNews(group, FailureOf(event))) return;
  Log(JobEnded(event, DriversNow(session_.tree(), event.job), next));
}

// The siblings of what was given are to be withheld at once; who has got it is asked a little
// later.
void Agent::OnAllocated(const std::vector<std::string>& ids, absl::Time now) {
  tenants_.Ask(now);
  if (!pictures_.asked() && HaveSiblings(offers_, ids)) pictures_.Ask();
}

void Agent::StepPlugins(absl::Time now) {
  std::vector<std::string> given;
  for (const PluginEvent& event : plugins_->Step(now)) {
    if (transitions_.IsNews(event)) Log(PluginSeen(event));
    if (event.kind == PluginEvent::Kind::kAllocated) {
      given.insert(given.end(), event.ids.begin(), event.ids.end());
    }
    if (event.kind == PluginEvent::Kind::kKubeletRestarted) tenants_.Ask(now);
    if (event.kind != PluginEvent::Kind::kDirectoryReplaced) continue;
    // A mount in a pod goes on showing the old directory: only a new container sees the new one.
    Log(AgentStopping("the kubelet's directory was replaced", "a restart sees the new one"));
    exit_code_ = kExitFailed;
    loop_.Stop();
  }
  if (!given.empty()) OnAllocated(given, now);
}

}  // namespace vfio_agent
