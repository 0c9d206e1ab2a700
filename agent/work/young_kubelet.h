// What a kubelet that has just started does not tell yet.
#pragma once

#include "absl/time/time.h"
#include "agent/config/settings.h"
#include "iommu/tenancy/claims.h"

namespace vfio_agent {

// It answers before it has heard of all its pods, and lists those that it has heard of.
inline constexpr absl::Duration kKubeletYouth = absl::Seconds(30);

// Adds to `claims`, a list of the kubelet's, what its checkpoint has besides, where one of its
// sockets has been there for less than kKubeletYouth at `now` (wall clock): it reads the checkpoint
// before it answers, and gives nothing away that stands in it. A checkpoint that is not understood
// is one that the kubelet does not understand either; where it cannot be read, the claims are not
// known.
void AddUnlisted(const Settings& settings, absl::Time now, PodClaims& claims);

}  // namespace vfio_agent
