// From a claim's devices to the units of the newest offers, and whether those can be given. No
// files of ours.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/dra/claim_desk.h"

namespace vfio_agent {

// Unavailable: the node was not read yet, so that asking again helps.
absl::Status NotReadYet();

// The unit that an allocated device is. FailedPrecondition where there is none; Unavailable where
// it waits to be bound.
absl::StatusOr<PreparedDevice> FindAllocated(const DraOffers& offers,
                                             const AllocatedDevice& device);

// All devices of the claim, in its order. Errors as of FindAllocated().
absl::StatusOr<std::vector<RealDevice>> FindReal(const DraOffers& offers,
                                                 const PreparedClaim& claim);

// As for Allocate: every unit healthy and, in the kernel's eyes, what was offered; none twice;
// several of a resource only as partitions allow. FailedPrecondition with the first thing that is
// not so.
absl::Status CheckDevices(const Tree& tree, const DraOffers& offers, const PreparedClaim& claim,
                          const std::vector<RealDevice>& devices);

// The units of the claim that there are now.
std::vector<Ledger::Held> HeldNow(const DraOffers& offers, const PreparedClaim& claim);

// What the kubelet is told.
std::vector<ClaimDevice> MakeAnswer(const std::string& driver, const PreparedClaim& claim);

}  // namespace vfio_agent
