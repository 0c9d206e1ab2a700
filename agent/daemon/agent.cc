#include "agent/daemon/agent.h"

#include <unistd.h>

#include <algorithm>

#include "agent/daemon/report.h"
#include "agent/exit_code.h"
#include "agent/log.h"
#include "agent/work/driver_reader.h"
#include "agent/work/young_kubelet.h"
#include "sysfs/clock.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

// Of each side's servers, and of all together with the last words to the cluster: two seconds are
// what the end may take.
constexpr absl::Duration kShutdown = absl::Milliseconds(600);
constexpr absl::Duration kWholeEnd = absl::Milliseconds(1700);
// How often an agent that waits looks whether the one before it has gone.
constexpr absl::Duration kLockPoll = absl::Milliseconds(200);

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
      outlets_(book_, [this] { loop_.Wake(); }),
      retries_(static_cast<unsigned>(::getpid())),
      config_watch_(session.invocation().config_file, session.config().fingerprint),
      mode_(session.settings().state_dir, session.config().mode) {}

// True once this is the only agent of the node; false where it was told to end before.
bool Agent::TakeNode() {
  absl::Status status = lock_.TryTake();
  if (absl::IsUnavailable(status)) {
    Say(AgentWaiting(lock_.holder()));
    outlets_.OpenWaiting(session_.settings());
    loop_.Run([] { return MonotonicNow() + kLockPoll; },
              [&] {
                status = lock_.TryTake();
                book_.Waits(lock_.holder(), MonotonicNow());
                SayNotes();
                if (!absl::IsUnavailable(status)) loop_.Stop();
              });
  }
  if (terminated_) return false;
  // What is bound can be served all the same; nothing new is written without a journal.
  if (!status.ok()) Say(Note(Message(status) + ": " + kStateRemedy));
  return true;
}

// Whoever waited for the node may have done so for long.
void Agent::ReadConfigAgain() {
  const absl::Time now = MonotonicNow();
  config_watch_.Look(now);
  CheckConfig(now + absl::Seconds(1));  // at once: a text that is being written is read again later
}

absl::Status Agent::Open() {
  session_.BeBrief();
  OpenMode();
  absl::StatusOr<Answers> answers = answers_file_.Read();
  if (!answers.ok()) Say(Note(Message(answers.status())));
  ledger_ = std::make_unique<Ledger>(answers.ok() ? *std::move(answers) : Answers());
  plugins_ =
      std::make_unique<Plugins>(Plugins::Options{.dir = session_.settings().device_plugin_dir,
                                                 .registry_dir = RegistryDir(session_.settings()),
                                                 .tree = &session_.tree(),
                                                 .ledger = ledger_.get(),
                                                 .ask = AskWithDeadline(session_.tree().root())},
                                [this] { loop_.Wake(); });
  dra_.Open(ledger_.get(), [this] { loop_.Wake(); });
  outlets_.Open(session_.settings());
  OpenCluster();
  SetGrace();
  loop_.Watch(jobs_.fd(), [] {});  // Turn() polls the jobs
  loop_.Watch(plugins_->watch_fd(), [this] { plugins_->OnWatch(); });
  loop_.Watch(config_watch_.fd(), [this] { config_watch_.Drain(MonotonicNow()); });
  loop_.Watch(nodes_.fd(), [this] {
    if (nodes_.Drain()) Ask("node");
  });
  // The kernel speaks of its own devices only: of no use for another root.
  if (!session_.tree().is_host()) return absl::OkStatus();
  absl::StatusOr<Uevents> uevents = Uevents::Open();
  if (!uevents.ok()) {
    Say(UeventsUnavailable(Message(uevents.status())));
    return absl::OkStatus();
  }
  uevents_ = *std::move(uevents);
  loop_.Watch(uevents_->fd(), [this] {
    if (uevents_->Drain() > 0) Ask("uevent");
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
    Say(ReadFailed(Message(status)));
    return kExitFailed;
  }
  Say(AgentStarted(session_));
  ReadConfigAgain();
  for (const std::string& sentence : TellMisspeltVariables()) Say(Note(sentence));
  const std::vector<Lack> lacks = FindLacks(ReadPrivileges(session_.tree()));
  if (!lacks.empty()) Say(PrivilegesMissing(lacks));
  Tell();
  loop_.Run([this] { return Deadline(); }, [this] { Turn(); });
  End();
  for (const Event& event : lines_.Rest(MonotonicNow())) Log(event);
  return exit_code_;
}

void Agent::End() {
  const bool released = session_.settings().on_exit == OnExit::kRelease && exit_code_ == kExitDone;
  const absl::Time end = MonotonicNow() + kWholeEnd;
  dra_.Shutdown(kShutdown);
  plugins_->Shutdown(kShutdown);
  keep_again_ = absl::InfinitePast();
  KeepAnswers(MonotonicNow());  // of the last calls
  cluster_.End(session_.settings(), released, std::max(end - MonotonicNow(), absl::ZeroDuration()));
  session_.Remember(MakeWish(MonotonicNow()));
  if (session_.settings().on_exit != OnExit::kRelease) return;
  FinishJobs();
  if (exit_code_ != kExitDone) return;
  WriteCdi({});  // what leads to devices goes before them
  TellNfd("", {});
}

void Agent::OnSignal() {
  const Signals::Seen seen = signals_.Take();
  if (seen.reload) Reload(true);
  if (!seen.terminate && !seen.interrupt) return;
  const bool keep = session_.settings().on_exit == OnExit::kKeep;
  Say(AgentStopping(seen.terminate ? "SIGTERM" : "SIGINT",
                    keep ? "devices stay bound" : "what nobody holds is released"));
  terminated_ = true;
  loop_.Stop();
}

absl::Time Agent::Deadline() const {
  const absl::Time next = std::min({jobs_.NextDeadline(), plugins_->NextDeadline(),
                                    pictures_.Next(session_.settings().resync), config_watch_.due(),
                                    lines_.due(), cluster_.due(), dra_.due()});
  // A new picture will tell anew what is to be tried again.
  return pictures_.asked() ? next
                           : std::min({next, NextRetry(), look_again_, tenants_.due(), nfd_.due(),
                                       mode_.decision().next, keep_mode_again_});
}

void Agent::Turn() {
  absl::Time now = MonotonicNow();
  for (const JobEvent& event : jobs_.Poll(now)) OnJobEvent(event, now);
  CheckConfig(now);
  // Nothing is tried again from an old picture.
  if (NextRetry() <= now) Ask("retry");
  if (look_again_ <= now) Ask("again");
  if (tenants_.due() <= now) Ask("pods");
  if (nfd_.due() <= now) Ask("nfd");
  if (std::min(mode_.decision().next, keep_mode_again_) <= now) Ask("mode");
  if (pictures_.Next(session_.settings().resync) <= now) Reconcile(now);
  now = MonotonicNow();  // reading took a while, which is not to count against a job's deadline
  KeepMode(now);
  StartJobs(now);
  StepPlugins(now);
  StepDra(now);
  KeepAnswers(now);
  Tell();
}

// The first reason to look is the one that is told.
void Agent::Ask(const char* trigger) {
  if (!pictures_.asked()) trigger_ = trigger;
  pictures_.Ask();
}

void Agent::SayNotes() {
  for (const std::string& note : outlets_.TakeNotes()) Say(Note(note));
}

void Agent::Reconcile(absl::Time now) {
  const Wish wish = MakeWish(now);
  const std::string trigger = pictures_.asked() ? trigger_ : "resync";
  config_watch_.Look(now);
  pictures_.Begin(now);
  work_.clear();
  std::vector<std::string> notes;
  absl::StatusOr<Picture> picture = session_.Take(notes, wish);
  pictures_.End(MonotonicNow(), picture.ok());
  book_.PictureTaken(trigger, MonotonicNow() - now, Message(picture.status()));
  if (picture.ok()) {
    last_read_error_.clear();
    dra_.Begin(session_, *picture);
    DecideMode(wish, *picture, now);
    Publish(*picture, notes);
    // Only now that the offers that follow from the picture are out: before, Allocate needs them.
    ledger_->Drop(picture->settled);
    ledger_->Told(picture->turn);
    if (!looked_) tenants_.Ask(now);
    if (wish.tenants != Wish::Tenants::kLast) LookedAtTenants(wish, *picture, now);
    looked_ = true;
  } else if (const std::string error = Message(picture.status()); error != last_read_error_) {
    Say(ReadFailed(error));
    last_read_error_ = error;
  }
}

void Agent::StepPlugins(absl::Time now) {
  std::vector<std::string> given;
  for (const PluginEvent& event : plugins_->Step(now)) {
    book_.PluginSaw(event);
    if (transitions_.IsNews(event)) {
      Say(PluginSeen(event));
    } else {
      cluster_.Saw(PluginSeen(event), true);
    }
    if (event.kind == PluginEvent::Kind::kAllocated) {
      given.insert(given.end(), event.ids.begin(), event.ids.end());
    }
    if (event.kind == PluginEvent::Kind::kKubeletRestarted) {
      kubelet_grown_ = now + kKubeletYouth;
      tenants_.Ask(now);
    }
    if (event.kind != PluginEvent::Kind::kDirectoryReplaced) continue;
    // A mount in a pod goes on showing the old directory: only a new container sees the new one.
    Say(AgentStopping("the kubelet's directory was replaced", "a restart sees the new one"));
    exit_code_ = kExitFailed;
    loop_.Stop();
  }
  kubelet_met_ = kubelet_met_ || plugins_->kubelet_up();
  if (!given.empty()) OnAllocated(given, now);
  if (cluster_.WantsPods()) tenants_.Ask(now);
}

}  // namespace vfio_agent
