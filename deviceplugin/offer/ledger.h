// Ledger: what Allocate has given, of all resources of the node.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "deviceplugin/grpc/mutex.h"
#include "deviceplugin/offer/answer.h"
#include "deviceplugin/offer/offer.h"
#include "iommu/tenancy/tenancy.h"

namespace vfio_agent {

// Two pods never get one group: Allocate does not say which pod asks, so all units of a group that
// are out must have been asked for by one container. The kubelet's own list of pods follows an
// Allocate by a moment; until a look at it has settled a grant, the ledger knows. Thread-safe;
// every method is quick and waits for nothing but the lock.
class Ledger {
 public:
  // `answers`: of the agent before this one.
  explicit Ledger(Answers answers = {}) : answers_(std::move(answers)) {}

  // One call of Allocate: the units of each of its containers, all or nothing.
  //
  // FailedPrecondition, beginning with "group-split", where a group would be split: units of it
  // are out and none of them is asked for. Where one is, it is free in the kubelet's eyes, and
  // with it what the same container had: that counts.
  absl::Status Take(const std::string& resource,
                    const std::vector<std::vector<const OfferedUnit*>>& containers)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Takes back what that last Take() of these units gave, which then went to nobody.
  void GiveBack(const std::vector<std::vector<const OfferedUnit*>>& containers)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Before a container starts with what the kubelet has kept for it, perhaps since before its own
  // restart, when its list of pods does not tell of it yet: the units are out from now on, however
  // long ago they were given, unless others of a group are. Errors as of Take().
  absl::Status Start(const std::string& resource, const std::vector<const OfferedUnit*>& units)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // What pods have of `offers` and no answer tells of, since the agent that gave it ended before it
  // was written down: as if it had been answered with what is there now.
  void Learn(const PodClaims& claims, const std::vector<Offer>& offers) ABSL_LOCKS_EXCLUDED(mutex_);

  struct Held {
    std::string resource;
    const OfferedUnit* unit = nullptr;
  };
  // The ResourceClaim of this uid has these units, and their groups whole, until LetGo(). As of
  // Take(), where a unit of one of the groups is out, or another claim has one; nothing is held
  // then. The units are grants, too, which no look at the claims settles before Stands().
  absl::Status Hold(const std::string& claim, const std::vector<Held>& units)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The claim's record is on disk: a look at the claims from now on finds it there.
  void Stands(const std::string& claim) ABSL_LOCKS_EXCLUDED(mutex_);
  // The same for what stands already. What the claim was told of its units is not told anew.
  absl::Status HoldAgain(const std::string& claim, const std::vector<Held>& units)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void LetGo(const std::string& claim) ABSL_LOCKS_EXCLUDED(mutex_);

  // OK where what the last answer about `unit` named is still the unit's, and where there was
  // none. Otherwise FailedPrecondition, with the difference.
  absl::Status CheckUnchanged(const OfferedUnit& unit) const ABSL_LOCKS_EXCLUDED(mutex_);

  // The turn of the last grant so far.
  uint64_t turn() const ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<Grant> Grants() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The offers that are out were made in knowledge of all grants up to the one of this turn.
  void Told(uint64_t turn) ABSL_LOCKS_EXCLUDED(mutex_);
  // True where the unit is out by a grant that these offers do not know of: what they say against
  // it is older.
  bool IsNews(const std::string& unit) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Drops these very grants, not later ones of the same units.
  void Drop(const std::vector<Grant>& settled) ABSL_LOCKS_EXCLUDED(mutex_);

  Answers answers() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Counts changes of what answers() gives.
  uint64_t version() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // OK where no claim has one of the groups.
  absl::Status CheckUnclaimed(const std::map<int, std::vector<std::string>>& wanted) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Status HoldGroups(const std::string& claim, const std::vector<Held>& units)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // What the answer about the unit names from now on.
  void Answered(const std::string& resource, const OfferedUnit& unit)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  uint64_t turn_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t told_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<int, std::vector<Grant>> grants_ ABSL_GUARDED_BY(mutex_);  // by group
  std::map<int, std::string> claims_ ABSL_GUARDED_BY(mutex_);         // uid of who has it, by group
  std::map<std::string, std::vector<Grant>> claim_grants_ ABSL_GUARDED_BY(mutex_);  // by uid
  Answers answers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace vfio_agent
