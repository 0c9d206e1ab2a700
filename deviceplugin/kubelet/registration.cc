#include "deviceplugin/kubelet/registration.h"

#include <algorithm>

namespace vfio_agent {
namespace {

constexpr absl::Duration kFirstBackoff = absl::Seconds(1);
constexpr absl::Duration kLongestBackoff = absl::Seconds(30);
constexpr absl::Duration kAfterRejection = absl::Seconds(60);
constexpr absl::Duration kAwaitList = absl::Seconds(10);
constexpr absl::Duration kContentionWindow = absl::Minutes(1);
// Kubelets up to 1.36 know a plugin by its resource only: when they see the old stream end after
// the new Register, they drop the new plugin. This lets them see it before.
constexpr absl::Duration kLetOldStreamEnd = absl::Milliseconds(250);
// The plugin watcher looks once a second at what has come and gone.
constexpr absl::Duration kLetWatcherSee = absl::Milliseconds(2500);
// The kubelet looks at a socket that it refused again by itself, up to two minutes later.
constexpr absl::Duration kWatcherIsSilent = absl::Minutes(3);
// A kubelet that starts may sweep a new socket away once or twice; more is not its doing.
constexpr int kSweepsForgiven = 3;

absl::Duration AfterLoss(double jitter) { return absl::Seconds(1) + absl::Seconds(2) * jitter; }

absl::Duration Spread(absl::Duration wait, double jitter) { return wait * (1 + jitter / 4); }

}  // namespace

void Registration::On(Event event, absl::Time now, double jitter) {
  switch (event) {
    case Event::kServed:
      return Served(now);
    case Event::kServeFailed:
      return StartAnew(now + Backoff(jitter));
    case Event::kWithdrawn:
      return Withdrawn(now);
    case Event::kRegisterRefused:
      return Refused(now, jitter);
    case Event::kRegisterSent:
      phase_ = Phase::kRegistering;
      return;
    case Event::kRegisterOk:
      return RegisterOk(now);
    case Event::kKubeletUnreachable:
      phase_ = Phase::kListening;
      not_before_ = now + Backoff(jitter);
      return;
    case Event::kRegisterRejected:
      return Rejected(now, jitter);
    case Event::kListOpened:
      return ListOpened(now);
    case Event::kListClosed:
      return Lost(now, jitter);
    case Event::kKubeletSeen:
    case Event::kKubeletMissing:
      kubelet_ = event == Event::kKubeletSeen;
      return;
    case Event::kKubeletRestarted:
      return KubeletRestarted(now);
    case Event::kSocketGone:
      return SocketGone(now, jitter);
    case Event::kForgotten:
      return Forgotten(now, jitter);
    case Event::kRivalGone:
      return RivalGone(now, jitter);
  }
}

Registration::Step Registration::Next(absl::Time now) {
  if (phase_ == Phase::kAwaitList && now >= list_deadline_) {
    ++failures_;
    StartAnew(now);
  }
  switch (phase_) {
    case Phase::kDown:
      if (now < not_before_) return {.until = not_before_};
      return {.kind = placed_ ? Step::Kind::kWithdraw : Step::Kind::kServe};
    case Phase::kListening:
      if (!kubelet_ || way_ == Way::kDirectory) return {};
      if (now < not_before_) return {.until = not_before_};
      return {.kind = Step::Kind::kRegister};
    case Phase::kAwaitList:
      return {.until = list_deadline_};
    case Phase::kRegistering:
      return {};
    case Phase::kServing:
      return WhileServing(now);
  }
  return {};
}

Registration::Step Registration::WhileServing(absl::Time now) {
  if (!contended()) return {};
  const absl::Time settled = serving_since_ + kContentionWindow;
  if (now < settled) return {.until = settled};
  losses_ = 0;
  return {};
}

void Registration::Served(absl::Time now) {
  phase_ = Phase::kListening;
  placed_ = way_ == Way::kDirectory;
  not_before_ = streams_ > 0 ? now + kLetOldStreamEnd : now;
  streams_ = 0;
}

void Registration::Withdrawn(absl::Time now) {
  phase_ = Phase::kDown;
  placed_ = false;
  streams_ = 0;
  not_before_ = now + kLetWatcherSee;
}

void Registration::Refused(absl::Time now, double jitter) {
  StartAnew(now + (way_ == Way::kDirectory ? Spread(kWatcherIsSilent, jitter) : Backoff(jitter)));
}

void Registration::Rejected(absl::Time now, double jitter) {
  if (way_ == Way::kDirectory) return Refused(now, jitter);
  phase_ = Phase::kListening;
  not_before_ = now + Spread(kAfterRejection, jitter);
}

void Registration::RegisterOk(absl::Time now) {
  if (phase_ == Phase::kServing) return;
  phase_ = Phase::kAwaitList;
  list_deadline_ = now + kAwaitList;
  if (streams_ == 0) return;
  // The kubelet has opened the stream before its answer was seen here.
  phase_ = Phase::kServing;
  serving_since_ = now;
}

void Registration::StartAnew(absl::Time at) {
  phase_ = Phase::kDown;
  not_before_ = at;
}

void Registration::ListOpened(absl::Time now) {
  ++streams_;
  // The kubelet that finds the socket may come back to it whenever it likes, and it tells what came
  // of it last.
  const bool awaited = phase_ == Phase::kAwaitList || way_ == Way::kDirectory;
  if (awaited && phase_ != Phase::kServing) {
    phase_ = Phase::kServing;
    serving_since_ = now;
  }
  if (phase_ == Phase::kServing) failures_ = 0;
}

void Registration::Lost(absl::Time now, double jitter) {
  streams_ = std::max(0, streams_ - 1);
  if (streams_ == 0) Forgotten(now, jitter);
}

void Registration::Forgotten(absl::Time now, double jitter) {
  if (phase_ != Phase::kServing) return;
  losses_ = now - serving_since_ < kContentionWindow ? losses_ + 1 : 1;
  StartAnew(now + (contended() ? Spread(kLongestBackoff, jitter) : AfterLoss(jitter)));
}

void Registration::KubeletRestarted(absl::Time now) {
  kubelet_ = true;
  failures_ = 0;
  losses_ = 0;
  // Whoever finds our socket comes by himself.
  if (way_ == Way::kDirectory) return;
  not_before_ = now;
  // A server that no kubelet has heard of is as good as a new one.
  if (phase_ != Phase::kListening) phase_ = Phase::kDown;
}

void Registration::SocketGone(absl::Time now, double jitter) {
  if (phase_ == Phase::kDown && !placed_) return;
  const absl::Duration wait = Backoff(jitter);
  absl::Time soonest = now;
  if (way_ == Way::kDirectory) {
    Withdrawn(now);
    soonest = not_before_;
  }
  StartAnew(failures_ > kSweepsForgiven ? std::max(soonest, now + wait) : soonest);
}

// Up to 1.36 a rival that registers later takes the resource over and, when it ends, down with it,
// while our stream stays open all the time. The pause lets the kubelet see that end first.
void Registration::RivalGone(absl::Time now, double jitter) {
  if (phase_ == Phase::kServing) StartAnew(now + AfterLoss(jitter));
}

absl::Duration Registration::Backoff(double jitter) {
  // 2^5 s is above the longest already; more would only overflow.
  const int doublings = std::min(failures_, 5);
  ++failures_;
  return Spread(std::min(kLongestBackoff, kFirstBackoff * (1 << doublings)), jitter);
}

}  // namespace vfio_agent
