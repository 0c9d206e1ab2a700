// Registration: when one resource is to be served and registered anew. Pure: no clock, no I/O.
#pragma once

#include "absl/time/time.h"

namespace vfio_agent {

// The kubelet opens the ListAndWatch stream once for each registration and never again, and it may
// answer "OK" to a Register that it ignores. So a resource counts as registered only while a
// stream is open, and everything that casts doubt on that leads to a new server on a new socket
// and a new Register: the old pair is never repaired. An object is a plain value; tests copy it.
class Registration {
 public:
  enum class Event {
    kServed,              // a new server listens
    kServeFailed,         // it could not be started
    kRegisterSent,        // Register is under way
    kRegisterOk,          // the kubelet said yes
    kKubeletUnreachable,  // nobody answered: the kubelet has heard nothing
    kRegisterRefused,     // any other failure; the kubelet may remember this socket
    kRegisterRejected,    // the kubelet will always say so: a bad name, an unknown version
    kListOpened,
    kListClosed,
    kKubeletSeen,  // kubelet.sock is there
    kKubeletMissing,
    kKubeletRestarted,  // kubelet.sock is another one, or has come up
    kSocketGone,        // our own socket's file was taken away
  };

  enum class Phase { kDown, kListening, kRegistering, kAwaitList, kServing };

  struct Step {
    enum class Kind { kWait, kServe, kRegister };
    Kind kind = Kind::kWait;
    absl::Time until = absl::InfiniteFuture();  // kWait: ask again then, or after an event
    bool operator==(const Step&) const = default;
  };

  // Takes note of what happened. `jitter`, 0 to 1, spreads the waits that follow from it, so that
  // the plugins of one node do not knock in step.
  void On(Event event, absl::Time now, double jitter);

  // What is to be done now. After kServe tell kServed or kServeFailed, after kRegister
  // kRegisterSent.
  Step Next(absl::Time now);

  Phase phase() const { return phase_; }
  bool registered() const { return phase_ == Phase::kServing; }
  int streams() const { return streams_; }

  // The stream was lost three times within a minute although the kubelet lives: a sign that
  // somebody else on this node registers the same resource.
  bool contended() const { return losses_ >= kContended; }

 private:
  static constexpr int kContended = 3;

  void Served(absl::Time now);
  void StartAnew(absl::Time at);
  void Lost(absl::Time now, double jitter);
  void KubeletRestarted(absl::Time now);
  void SocketGone(absl::Time now, double jitter);
  void ListOpened();
  absl::Duration Backoff(double jitter);

  Phase phase_ = Phase::kDown;
  bool kubelet_ = false;
  int streams_ = 0;   // of the present server
  int failures_ = 0;  // in a row
  int losses_ = 0;    // streams lost, each within a minute of the one before
  absl::Time last_loss_ = absl::InfinitePast();
  absl::Time not_before_ = absl::InfinitePast();
  absl::Time list_deadline_ = absl::InfiniteFuture();
};

}  // namespace vfio_agent
