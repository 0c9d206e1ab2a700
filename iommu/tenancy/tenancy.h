// Tenancy: who has which group, as a value: what the kubelet tells of pods, what Allocate has given
// a moment ago, and which groups processes have open.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "iommu/tenancy/claims.h"
#include "sysfs/use/holders.h"

namespace vfio_agent {

// A unit that Allocate has given and that no look at the kubelet's pods has settled yet.
struct Grant {
  std::string resource;
  std::string unit;   // the device id
  int group = 0;      // as the answer named it
  uint64_t turn = 0;  // counts Allocate calls: a later grant of the same unit has a higher one
  absl::Time at;      // MonotonicNow() before the answer
  bool operator==(const Grant&) const = default;
};

struct Tenancy {
  // The last list that the kubelet gave. `known` is false only where it never gave one to this
  // process: then any unit may be a pod's.
  PodClaims claims;
  // Why the kubelet does not answer now, so that `claims` is old; empty while it does.
  std::string silent;
  std::vector<Grant> grants;
  // By group, of those that are with a vfio driver; looked at after `claims` is and before `grants`
  // are, so that whom a pod's process belongs to is known. A pod that has just ended may stand in
  // `claims` for one look more.
  std::map<int, std::vector<Holder>> open;
  absl::Time opened = absl::InfinitePast();  // when that was: MonotonicNow() before the look
  bool operator==(const Tenancy&) const = default;
};

// Those of `grants` that `claims`, asked for at `looked`, leave open: the kubelet did not answer,
// or had perhaps not put the unit down yet. It does that as soon as it has our answer, so a unit
// that no pod has ten seconds later is free: the pod was not admitted, or has gone. Unless a
// process has the group open by then, since of init containers the kubelet tells nothing. What it
// has only written down settles nothing: it is asked for while the kubelet is young alone.
std::vector<Grant> OpenGrants(const std::vector<Grant>& grants, const Tenancy& tenancy,
                              absl::Time looked);

}  // namespace vfio_agent
