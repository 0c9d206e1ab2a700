// ClaimDesk: prepares claims and takes them back, for the DRA driver's server.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agent/dra/claim_files.h"
#include "agent/dra/claim_store.h"
#include "deviceplugin/grpc/mutex.h"
#include "deviceplugin/offer/ledger.h"

namespace vfio_agent {

class Tree;

// What of the node claims can be given, as the loop has seen it last.
struct DraOffers {
  std::vector<Offer> offers;
  std::vector<DraDevice> devices;  // of these offers
  // Devices to be, whose units are not bound yet: why not, by name.
  std::map<std::string, std::string> waiting;
};

// Who knows the claims: the API server.
class ClaimSource {
 public:
  using Done = std::function<void(absl::StatusOr<std::string>)>;
  virtual ~ClaimSource() = default;
  // The claim's object as it is now, as text. Calls `done` once, on any thread, well within the 45
  // s that the kubelet waits. NotFound: it is gone; other errors say nothing of the claim.
  virtual void FetchClaim(const ClaimRef& claim, Done done) = 0;
};

// Something that happened to a claim; told on whatever thread.
struct ClaimEvent {
  enum class Kind { kPrepared, kPrepareFailed, kUnprepared, kUnprepareFailed };
  Kind kind = Kind::kPrepared;
  ClaimRef claim;
  std::vector<std::string> units;
  std::string text;             // why not
  std::optional<ClaimPod> pod;  // who waits for one that was not prepared, where that is known
  absl::Duration took;          // with what the API server took of it
};

// A claim gets its units as a container gets them of Allocate: each is looked at once more in the
// kernel, and its group goes to it whole, for as long as the claim is prepared: whatever the
// configuration makes of the unit meanwhile. What is prepared stands on disk before the kubelet
// hears of it. Nothing new is given while a record there cannot be read. All methods are for any
// thread.
class ClaimDesk final : public ClaimHandler {
 public:
  struct Options {
    ClaimPlaces places;
    std::string pool;
    std::string state_dir;
    std::string boot_id;  // empty: not known
    const Tree* tree = nullptr;
    Ledger* ledger = nullptr;
    ClaimSource* source = nullptr;  // outlives what it has still to answer
    std::function<void(ClaimEvent)> observer;
    // For tests: a new claim's record was written, and nobody else was told yet.
    std::function<void()> recorded;
  };
  explicit ClaimDesk(Options options) : options_(std::move(options)), store_(options_.state_dir) {}

  // Takes up what an agent before this one has prepared. Problems, each a sentence.
  std::vector<std::string> Open();

  // The newest offers. What is prepared holds its units from now on: problems with that.
  std::vector<std::string> Set(std::shared_ptr<const DraOffers> offers);

  void Prepare(const ClaimRef& claim, Prepared done) override;
  absl::Status Unprepare(const ClaimRef& claim) override;

  PreparedClaims prepared() const ABSL_LOCKS_EXCLUDED(state_mutex_);

 private:
  using Devices = absl::StatusOr<std::vector<ClaimDevice>>;
  // A Prepare that waits for the source: what takes its claim back meanwhile ends it.
  struct Waiting {
    bool cancelled = false;
  };

  Devices Complete(const ClaimRef& claim, const absl::StatusOr<std::string>& text,
                   const Waiting& waiting) ABSL_LOCKS_EXCLUDED(work_mutex_);
  // Takes up what was not read before. FailedPrecondition: something cannot be read.
  absl::Status ReadRecords() ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_mutex_)
      ABSL_LOCKS_EXCLUDED(state_mutex_);
  absl::Status CheckStillThat(const PreparedClaim& claim,
                              const absl::StatusOr<std::string>& text) const;
  absl::StatusOr<PreparedClaim> Choose(const ClaimRef& claim, const std::string& text) const;
  // What was not prepared before: a failure leaves nothing of it.
  Devices Give(const PreparedClaim& claim) ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_mutex_);
  // What was: its files as they are to be now.
  Devices GiveAgain(const PreparedClaim& claim) ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_mutex_);
  // What is on disk of a claim that the ledger holds: all of it, or an error.
  absl::Status WriteDown(const PreparedClaim& claim, const std::vector<RealDevice>& devices);
  absl::Status RemoveFilesOf(const std::string& uid) const ABSL_LOCKS_EXCLUDED(state_mutex_);
  absl::Status TakeBack(const std::string& uid) ABSL_LOCKS_EXCLUDED(work_mutex_, state_mutex_);
  void Tell(ClaimEvent event) const;
  // Those of a prepared claim.
  std::vector<std::string> UnitsOf(const std::string& uid) const ABSL_LOCKS_EXCLUDED(state_mutex_);
  std::shared_ptr<const DraOffers> offers() const ABSL_LOCKS_EXCLUDED(state_mutex_);
  void Remember(const PreparedClaim& claim) ABSL_LOCKS_EXCLUDED(state_mutex_);
  std::vector<std::string> HoldAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_mutex_);

  const Options options_;
  const ClaimStore store_;
  // Held while files are written: never by the loop.
  Mutex work_mutex_;
  std::multimap<std::string, std::shared_ptr<Waiting>> waiting_ ABSL_GUARDED_BY(work_mutex_);
  mutable Mutex state_mutex_;
  std::shared_ptr<const DraOffers> offers_ ABSL_GUARDED_BY(state_mutex_);  // null: none yet
  PreparedClaims prepared_ ABSL_GUARDED_BY(state_mutex_);  // changed with work_mutex_ only
};

}  // namespace vfio_agent
