// Claims: what the API server says that a ResourceClaim has been given, and what was prepared of
// it. Values; pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "deviceplugin/dra/dra_claims.h"

namespace vfio_agent {

// One device of ours in status.allocation.
struct AllocatedDevice {
  std::string request;  // "gpu", or "gpu/large" where it was the first that could be had
  std::string device;
  std::optional<std::string> share_id;
  bool operator==(const AllocatedDevice&) const = default;
};

struct Allocation {
  std::string pod_claim_name;  // the pod's own name for it; empty: no claim made from a template
  std::vector<AllocatedDevice> devices;
  bool operator==(const Allocation&) const = default;
};

// The allocation in `text`, the object as the API server gave it, which may be anything. Results of
// other drivers are not ours to look at.
//
// FailedPrecondition where the claim is another one of that name by now, is not allocated, or asks
// for something that cannot be given: a device of another node's pool, access for administrators,
// parameters. DataLoss: it is no such object.
absl::StatusOr<Allocation> ParseAllocation(std::string_view text, const ClaimRef& claim,
                                           const std::string& driver, const std::string& pool);

// A pod that a claim is reserved for; it is in the claim's namespace.
struct ClaimPod {
  std::string name;
  std::string uid;
  bool operator==(const ClaimPod&) const = default;
};

// Whom the claim in `text` is for, where status.reservedFor has one pod alone: with several of them
// nobody says which one waits.
std::optional<ClaimPod> OnlyPodOf(std::string_view text, const ClaimRef& claim);

// What a unit was when a claim was given it: the claim has that, whatever the configuration makes
// of its devices later.
struct GivenUnit {
  std::vector<std::string> addresses;  // as OfferedUnit has them
  std::vector<int> groups;             // every one; the numbers count in one boot only
  std::string mdev_type;
  std::string vgpu_type;
  bool operator==(const GivenUnit&) const = default;
};

// What a claim has been given, as it is kept on disk: enough to take it back without asking
// anybody.
struct PreparedDevice {
  std::string request;
  std::string device;    // "0000-3b-00-0"
  std::string resource;  // whose unit it is
  std::string unit;      // "0000:3b:00.0"
  std::optional<std::string> share_id;
  std::optional<GivenUnit> given;  // nullopt: by an agent that did not note it
  bool operator==(const PreparedDevice&) const = default;
};

struct PreparedClaim {
  ClaimRef ref;
  std::string pool;
  std::string pod_claim_name;
  std::vector<PreparedDevice> devices;
  // Under which name and where its spec was written; empty: by an agent that did not note it.
  std::string driver;
  std::string cdi_dir;
  std::string boot_id;  // of when it was prepared; empty: not known
  bool operator==(const PreparedClaim&) const = default;
};

// FailedPrecondition where `now` has other devices than what was prepared.
absl::Status CheckSameDevices(const PreparedClaim& claim, const Allocation& now);

// "gpu/large" -> "gpu": what a pod names.
std::string MainRequest(const std::string& request);

// A name of a request, or of a namespace or an object, that makes one part of a path.
bool IsRequestName(std::string_view request);
bool IsNamePart(std::string_view name);

// A uid that names files, and no others than those of its claim.
bool IsPlainUid(std::string_view uid);

}  // namespace vfio_agent
