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

// All devices of the claim, in its order, of whatever resource they are now. Errors as of
// FindAllocated(); FailedPrecondition, too, where a unit is composed otherwise than it was given.
absl::StatusOr<std::vector<RealDevice>> FindReal(const DraOffers& offers,
                                                 const PreparedClaim& claim);

// As for Allocate: every unit healthy and, in the kernel's eyes, what was offered; none twice;
// several of a resource only as partitions allow. FailedPrecondition with the first thing that is
// not so.
absl::Status CheckDevices(const Tree& tree, const DraOffers& offers, const PreparedClaim& claim,
                          const std::vector<RealDevice>& devices);

// As the ledger is to hold them.
std::vector<Ledger::Held> HeldOf(const std::vector<RealDevice>& devices);

// The unit as a record is to have it.
GivenUnit GivenOf(const OfferedUnit& unit);

// The units of the claim as they are to be held: as they are offered, and what is not, or composed
// otherwise by now, as the record has it, which counts in the boot that it is of (`boot_id`).
std::vector<OfferedUnit> UnitsHeld(const DraOffers& offers, const PreparedClaim& claim,
                                   const std::string& boot_id);

// OK where, in the kernel's eyes, the claim still has all that its record of this boot says, though
// it is not on offer; else `why`, the reason for which it is not, or what the kernel says.
absl::Status CheckStands(const Tree& tree, const PreparedClaim& claim, const std::string& boot_id,
                         const absl::Status& why);

// What the kubelet is told.
std::vector<ClaimDevice> MakeAnswer(const std::string& driver, const PreparedClaim& claim);

}  // namespace vfio_agent
