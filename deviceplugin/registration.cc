#include "deviceplugin/registration.h"

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
// A kubelet that starts may sweep a new socket away once or twice; more is not its doing.
constexpr int kSweepsForgiven = 3;

absl::Duration Spread(absl::Duration wait, double jitter) { return wait * (1 + jitter / 4); }

}  // namespace

void Registration::On(Event event, absl::Time now, double jitter) {
  switch (event) {
    case Event::kServed:
      return Served(now);
    case Event::kServeFailed:
    case Event::kRegisterRefused:
      return StartAnew(now + Backoff(jitter));
    case Event::kRegisterSent:
      phase_ = Phase::kRegistering;
      return;
    case Event::kRegisterOk:
      phase_ = Phase::kAwaitList;
      list_deadline_ = now + kAwaitList;
      // The kubelet may have opened the stream before its answer was seen here.
      if (streams_ > 0) phase_ = Phase::kServing;
      return;
    case Event::kKubeletUnreachable:
      phase_ = Phase::kListening;
      not_before_ = now + Backoff(jitter);
      return;
    case Event::kRegisterRejected:
      phase_ = Phase::kListening;
      not_before_ = now + Spread(kAfterRejection, jitter);
      return;
    case Event::kListOpened:
      return ListOpened();
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
      return {.kind = Step::Kind::kServe};
    case Phase::kListening:
      if (!kubelet_) return {};
      if (now < not_before_) return {.until = not_before_};
      return {.kind = Step::Kind::kRegister};
    case Phase::kAwaitList:
      return {.until = list_deadline_};
    case Phase::kRegistering:
    case Phase::kServing:
      return {};
  }
  return {};
}

void Registration::Served(absl::Time now) {
  phase_ = Phase::kListening;
  not_before_ = streams_ > 0 ? now + kLetOldStreamEnd : now;
  streams_ = 0;
}

void Registration::StartAnew(absl::Time at) {
  phase_ = Phase::kDown;
  not_before_ = at;
}

void Registration::ListOpened() {
  ++streams_;
  if (phase_ == Phase::kAwaitList) phase_ = Phase::kServing;
  if (phase_ == Phase::kServing) failures_ = 0;
}

void Registration::Lost(absl::Time now, double jitter) {
  streams_ = std::max(0, streams_ - 1);
  if (phase_ != Phase::kServing || streams_ > 0) return;
  losses_ = now - last_loss_ < kContentionWindow ? losses_ + 1 : 1;
  last_loss_ = now;
  StartAnew(now + (contended() ? Spread(kLongestBackoff, jitter)
                               : absl::Seconds(1) + absl::Seconds(2) * jitter));
}

void Registration::KubeletRestarted(absl::Time now) {
  kubelet_ = true;
  failures_ = 0;
  losses_ = 0;
  not_before_ = now;
  // A server that no kubelet has heard of is as good as a new one.
  if (phase_ != Phase::kListening) phase_ = Phase::kDown;
}

void Registration::SocketGone(absl::Time now, double jitter) {
  if (phase_ == Phase::kDown) return;
  const absl::Duration wait = Backoff(jitter);
  StartAnew(failures_ > kSweepsForgiven ? now + wait : now);
}

absl::Duration Registration::Backoff(double jitter) {
  // 2^5 s is above the longest already; more would only overflow.
  const int doublings = std::min(failures_, 5);
  ++failures_;
  return Spread(std::min(kLongestBackoff, kFirstBackoff * (1 << doublings)), jitter);
}

}  // namespace vfio_agent
