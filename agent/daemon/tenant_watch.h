// TenantWatch: when to look who has what. Nobody tells: pods come and go at the kubelet alone, and
// a guest that opens or closes its group makes no event.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "agent/session.h"
#include "deviceplugin/offer/offer.h"

namespace vfio_agent {

// Soon after something happened, then ever more rarely for as long as something is not settled
// (a grant that no pod has yet, a unit that waits for its sibling's pod to end), and at the resync
// otherwise. A value; the time comes from outside.
class TenantWatch {
 public:
  // What is not settled: nothing, something that only pods decide, or which processes live on.
  enum class Open { kNothing, kPods, kProcesses };

  // Something was allocated, or the kubelet is another one.
  void Ask(absl::Time now);
  // The same, with all processes: somebody is to be gone before something is done.
  void AskAll(absl::Time now);
  // Pods were looked at, and with `processes` these too. Where not everything is settled the next
  // look comes soon, else after `resync`.
  void Looked(absl::Time now, bool processes, Open open, absl::Duration resync);

  absl::Time due() const { return due_; }
  // True where the look that is due is to go through all processes, which costs more.
  bool WantsProcesses(absl::Time now) const { return now >= processes_due_; }

 private:
  absl::Time due_ = absl::InfiniteFuture();
  absl::Time processes_due_ = absl::InfinitePast();
  absl::Duration wait_ = kFirst;

  static constexpr absl::Duration kFirst = absl::Seconds(1);
  static constexpr absl::Duration kLongest = absl::Seconds(10);
};

// What may change before the next resync while somebody waits for it.
TenantWatch::Open WhatIsOpen(const Picture& picture, const std::vector<Offer>& offers);

// True where one of `ids` is of a group that has other units.
bool HaveSiblings(const std::vector<Offer>& offers, const std::vector<std::string>& ids);

}  // namespace vfio_agent
