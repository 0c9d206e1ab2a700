// ClaimStore: which claims were prepared, on disk: what they have is theirs until the kubelet takes
// it back, whatever becomes of the agent, of the kubelet or of the API server meanwhile.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/dra/claim.h"
#include "iommu/tenancy/claims.h"

namespace vfio_agent {

using PreparedClaims = std::map<std::string, PreparedClaim>;  // by uid

// One file for each claim, <state dir>/claims/<uid>.json: a schema, a checksum, the claim. Whole or
// not at all, and on the disk when Write() returns. Files are untrusted. Those of the first version
// of the schema, which lack what the units were, are read as well.
class ClaimStore {
 public:
  explicit ClaimStore(const std::string& state_dir) : dir_(state_dir + "/claims") {}

  // All that can be read; no directory means none. `problems`: what is no such file, and why. What
  // such a file's claim has is not known, so that nothing may be given to others.
  absl::StatusOr<PreparedClaims> Read(std::vector<std::string>& problems) const;
  absl::Status Write(const PreparedClaim& claim) const;
  // OK where there is none.
  absl::Status Forget(const std::string& uid) const;

 private:
  std::string PathOf(const std::string& uid) const;

  std::string dir_;
};

// The file's text, and back. DataLoss: broken; Unimplemented: another version's schema.
std::string ClaimToText(const PreparedClaim& claim);
absl::StatusOr<PreparedClaim> ParseClaim(std::string_view text);

// The claims of ResourceClaims, sorted: as units that somebody has.
std::vector<PodClaim> ClaimsOf(const PreparedClaims& claims);

// Adds those that the store below `state_dir` has to `claims`, whose list stays sorted, with all
// that they were given. Where a record cannot be read it is not known who has what. `boot_id`: this
// boot's; empty: not known.
void AddResourceClaims(const std::string& state_dir, const std::string& boot_id, PodClaims& claims);

}  // namespace vfio_agent
