// Registration: when one resource is to be served and registered anew. Pure: no clock, no I/O.
#pragma once

#include "absl/time/time.h"

namespace vfio_agent {

// The kubelet opens the ListAndWatch stream once for each registration and never again, and it may
// answer "OK" to a Register that it ignores. So a resource counts as registered only while a
// stream is open, and everything that casts doubt on that leads to a new server on a new socket
// and a new Register: the old pair is never repaired. An object is a plain value; tests copy it.
//
// Through the plugin watcher's directory it is the kubelet that calls, as often as it likes; what
// it does not mend there either is the end of a stream. The old socket must then be gone for a
// while before the new one appears: the kubelet takes one out and the other in at the same time, up
// to 1.36 under the same name.
class Registration {
 public:
  enum class Way {
    kCall,       // Register on kubelet.sock
    kDirectory,  // a socket in plugins_registry
  };

  enum class Event {
    kServed,              // a new server listens
    kServeFailed,         // it could not be started
    kWithdrawn,           // the server and its socket are gone
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
    kForgotten,         // the stream is open, but the kubelet counts none of our units
    kRivalGone,         // another plugin that served the same resource has left
  };

  enum class Phase { kDown, kListening, kRegistering, kAwaitList, kServing };

  struct Step {
    enum class Kind { kWait, kServe, kRegister, kWithdraw };
    Kind kind = Kind::kWait;
    absl::Time until = absl::InfiniteFuture();  // kWait: ask again then, or after an event
    bool operator==(const Step&) const = default;
  };

  explicit Registration(Way way = Way::kCall) : way_(way) {}

  // Takes note of what happened. `jitter`, 0 to 1, spreads the waits that follow from it, so that
  // the plugins of one node do not knock in step.
  void On(Event event, absl::Time now, double jitter);

  // What is to be done now. After kServe tell kServed or kServeFailed, after kRegister
  // kRegisterSent, after kWithdraw kWithdrawn.
  Step Next(absl::Time now);

  Phase phase() const { return phase_; }
  bool registered() const { return phase_ == Phase::kServing; }
  int streams() const { return streams_; }

  // Three streams in a row were lost within a minute of their start although the kubelet lives: a
  // sign that somebody else on this node registers the same resource. Until one has lasted for a
  // minute.
  bool contended() const { return losses_ >= kContended; }

 private:
  static constexpr int kContended = 3;

  void Served(absl::Time now);
  void Withdrawn(absl::Time now);
  void RegisterOk(absl::Time now);
  void Refused(absl::Time now, double jitter);
  void Rejected(absl::Time now, double jitter);
  void StartAnew(absl::Time at);
  void Lost(absl::Time now, double jitter);
  void Forgotten(absl::Time now, double jitter);
  void KubeletRestarted(absl::Time now);
  void SocketGone(absl::Time now, double jitter);
  void RivalGone(absl::Time now, double jitter);
  void ListOpened(absl::Time now);
  Step WhileServing(absl::Time now);
  absl::Duration Backoff(double jitter);

  Way way_;
  Phase phase_ = Phase::kDown;
  bool placed_ = false;  // kDirectory: our socket is there to be found
  bool kubelet_ = false;
  int streams_ = 0;   // of the present server
  int failures_ = 0;  // in a row
  int losses_ = 0;    // streams lost in a row, each within a minute of its start
  absl::Time serving_since_ = absl::InfinitePast();
  absl::Time not_before_ = absl::InfinitePast();
  absl::Time list_deadline_ = absl::InfiniteFuture();
};

}  // namespace vfio_agent
