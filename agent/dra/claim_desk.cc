#include "agent/dra/claim_desk.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "agent/dra/real_devices.h"
#include "deviceplugin/offer/verify.h"
#include "sysfs/clock.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

absl::Status CheckRef(const ClaimRef& claim) {
  if (IsPlainUid(claim.uid) && IsNamePart(claim.claim_namespace) && IsNamePart(claim.name)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("not a namespace, a name and a uid of a ResourceClaim");
}

std::string Unreadable(const std::string& problem) {
  return absl::StrFormat(
      "%s: what its claim has is not known, so no other one is prepared and no group released: "
      "where no ResourceClaim of that uid is left (kubectl get resourceclaims -A -o yaml), remove "
      "the file",
      problem);
}

// What an agent that was called otherwise has prepared is taken back under that name only.
std::string OfAnotherDriver(const PreparedClaim& claim) {
  return absl::StrFormat(
      "ResourceClaim %s/%s was prepared as the driver %s, which the kubelet will ask to take it "
      "back: set dra.driverName to that until its pod is gone",
      claim.ref.claim_namespace, claim.ref.name, claim.driver);
}

}  // namespace

std::shared_ptr<const DraOffers> ClaimDesk::offers() const {
  const MutexLock lock(state_mutex_);
  return offers_;
}

PreparedClaims ClaimDesk::prepared() const {
  const MutexLock lock(state_mutex_);
  return prepared_;
}

void ClaimDesk::Remember(const PreparedClaim& claim) {
  const MutexLock lock(state_mutex_);
  prepared_[claim.ref.uid] = claim;
}

std::vector<std::string> ClaimDesk::UnitsOf(const std::string& uid) const {
  const MutexLock lock(state_mutex_);
  std::vector<std::string> units;
  const auto found = prepared_.find(uid);
  if (found == prepared_.end()) return units;
  for (const PreparedDevice& device : found->second.devices) units.push_back(device.unit);
  return units;
}

void ClaimDesk::Tell(ClaimEvent event) const {
  if (options_.observer) options_.observer(std::move(event));
}

std::vector<std::string> ClaimDesk::Open() {
  std::vector<std::string> problems;
  const absl::StatusOr<PreparedClaims> prepared = store_.Read(problems);
  if (!prepared.ok()) problems.push_back(Message(prepared.status()));
  for (std::string& problem : problems) problem = Unreadable(problem);
  if (!prepared.ok()) return problems;
  for (const auto& entry : *prepared) {
    const PreparedClaim& claim = entry.second;
    if (claim.driver.empty() || claim.driver == options_.places.driver) continue;
    problems.push_back(OfAnotherDriver(claim));
  }
  const MutexLock lock(state_mutex_);
  prepared_ = *prepared;
  return problems;
}

absl::Status ClaimDesk::ReadRecords() {
  std::vector<std::string> problems;
  absl::StatusOr<PreparedClaims> read = store_.Read(problems);
  if (!read.ok()) return absl::FailedPreconditionError(Unreadable(Message(read.status())));
  {
    const MutexLock lock(state_mutex_);
    prepared_.merge(*read);
    if (offers_ != nullptr) HoldAll();  // what fails is told at the next picture
  }
  if (problems.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(Unreadable(problems.front()));
}

std::vector<std::string> ClaimDesk::HoldAll() {
  std::vector<std::string> problems;
  for (const auto& [uid, claim] : prepared_) {
    const std::vector<OfferedUnit> units = UnitsHeld(*offers_, claim, options_.boot_id);
    std::vector<Ledger::Held> held;
    for (const OfferedUnit& unit : units) held.push_back({.unit = &unit});
    if (held.empty()) continue;
    const absl::Status status = options_.ledger->HoldAgain(uid, held);
    if (!status.ok()) {
      problems.push_back(absl::StrFormat("ResourceClaim %s/%s: %s", claim.ref.claim_namespace,
                                         claim.ref.name, Message(status)));
    }
  }
  return problems;
}

std::vector<std::string> ClaimDesk::Set(std::shared_ptr<const DraOffers> offers) {
  // With the lock held, so that what is taken back meanwhile is not held again.
  const MutexLock lock(state_mutex_);
  offers_ = std::move(offers);
  return HoldAll();
}

void ClaimDesk::Prepare(const ClaimRef& claim, Prepared done) {
  const auto answer = [this, claim, began = MonotonicNow()](
                          const Devices& devices, const Prepared& tell,
                          std::optional<ClaimPod> pod = std::nullopt) {
    Tell({.kind = devices.ok() ? ClaimEvent::Kind::kPrepared : ClaimEvent::Kind::kPrepareFailed,
          .claim = claim,
          .units = UnitsOf(claim.uid),
          .text = Message(devices.status()),
          .pod = std::move(pod),
          .took = MonotonicNow() - began});
    tell(devices);
  };
  if (const absl::Status status = CheckRef(claim); !status.ok()) return answer(status, done);
  const auto waiting = std::make_shared<Waiting>();
  {
    const MutexLock lock(work_mutex_);
    waiting_.emplace(claim.uid, waiting);
  }
  options_.source->FetchClaim(claim, [this, claim, waiting, answer, tell = std::move(done)](
                                         const absl::StatusOr<std::string>& text) {
    const Devices devices = Complete(claim, text, *waiting);
    const bool ask = !devices.ok() && text.ok();
    answer(devices, tell, ask ? OnlyPodOf(*text, claim) : std::nullopt);
  });
}

ClaimDesk::Devices ClaimDesk::Complete(const ClaimRef& claim,
                                       const absl::StatusOr<std::string>& text,
                                       const Waiting& waiting) {
  const MutexLock lock(work_mutex_);
  std::erase_if(waiting_, [&waiting](const auto& entry) { return entry.second.get() == &waiting; });
  if (waiting.cancelled) {
    return absl::AbortedError("the claim was taken back before it was prepared");
  }
  const absl::Status records = ReadRecords();
  // What was prepared before is told again, with the files as they are to be now: /var/run does not
  // outlive a reboot.
  const PreparedClaims claims = prepared();
  if (const auto found = claims.find(claim.uid); found != claims.end()) {
    RETURN_IF_ERROR(CheckStillThat(found->second, text));
    return GiveAgain(found->second);
  }
  RETURN_IF_ERROR(records);
  if (!text.ok()) {
    return Annotate(text.status(),
                    absl::StrFormat("the API server does not tell of ResourceClaim %s/%s",
                                    claim.claim_namespace, claim.name));
  }
  ASSIGN_OR_RETURN(const PreparedClaim chosen, Choose(claim, *text));
  return Give(chosen);
}

// The record is enough where the API server is away.
absl::Status ClaimDesk::CheckStillThat(const PreparedClaim& claim,
                                       const absl::StatusOr<std::string>& text) const {
  if (absl::IsNotFound(text.status())) {
    return absl::FailedPreconditionError(
        absl::StrFormat("ResourceClaim %s/%s is prepared here, but the API server has none",
                        claim.ref.claim_namespace, claim.ref.name));
  }
  if (!text.ok()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Allocation now,
                   ParseAllocation(*text, claim.ref, options_.places.driver, options_.pool));
  return CheckSameDevices(claim, now);
}

absl::StatusOr<PreparedClaim> ClaimDesk::Choose(const ClaimRef& claim,
                                                const std::string& text) const {
  ASSIGN_OR_RETURN(const Allocation allocation,
                   ParseAllocation(text, claim, options_.places.driver, options_.pool));
  const auto now = offers();
  if (now == nullptr) return NotReadYet();
  PreparedClaim chosen{.ref = claim,
                       .pool = options_.pool,
                       .pod_claim_name = allocation.pod_claim_name,
                       .driver = options_.places.driver,
                       .cdi_dir = options_.places.cdi_dir,
                       .boot_id = options_.boot_id};
  for (const AllocatedDevice& device : allocation.devices) {
    ASSIGN_OR_RETURN(PreparedDevice found, FindAllocated(*now, device));
    chosen.devices.push_back(std::move(found));
  }
  return chosen;
}

ClaimDesk::Devices ClaimDesk::Give(const PreparedClaim& claim) {
  const auto now = offers();
  if (now == nullptr) return NotReadYet();
  ASSIGN_OR_RETURN(const std::vector<RealDevice> devices, FindReal(*now, claim));
  RETURN_IF_ERROR(CheckDevices(*options_.tree, *now, claim, devices));
  const std::string& uid = claim.ref.uid;
  RETURN_IF_ERROR(options_.ledger->Hold(uid, HeldOf(devices)));
  if (const absl::Status status = WriteDown(claim, devices); !status.ok()) {
    RemoveClaimFiles(options_.places, uid).IgnoreError();  // the first error counts
    // Without its record nobody would know whose the units are: they stay with the claim until that
    // is gone, too.
    if (store_.Forget(uid).ok()) options_.ledger->LetGo(uid);
    return status;
  }
  Remember(claim);
  options_.ledger->Stands(uid);
  return MakeAnswer(options_.places.driver, claim);
}

absl::Status ClaimDesk::WriteDown(const PreparedClaim& claim,
                                  const std::vector<RealDevice>& devices) {
  RETURN_IF_ERROR(store_.Write(claim));
  RETURN_IF_ERROR(WriteClaimFiles(options_.places, claim, devices));
  if (options_.recorded) options_.recorded();
  // A picture from before the ledger had the claim may be out since, which gives its units up.
  const auto now = offers();
  ASSIGN_OR_RETURN(const std::vector<RealDevice> still, FindReal(*now, claim));
  return CheckDevices(*options_.tree, *now, claim, still);
}

// The kernel alone decides: what its pod has it may start again with, though no other would be
// given it now. Files of what is not on offer are those that were written then.
ClaimDesk::Devices ClaimDesk::GiveAgain(const PreparedClaim& claim) {
  const auto now = offers();
  if (now == nullptr) return NotReadYet();
  const absl::StatusOr<std::vector<RealDevice>> devices = FindReal(*now, claim);
  if (!devices.ok()) {
    RETURN_IF_ERROR(CheckStands(*options_.tree, claim, options_.boot_id, devices.status()));
    if (!HasClaimFiles(options_.places, claim)) return devices.status();
    return MakeAnswer(options_.places.driver, claim);
  }
  for (const RealDevice& real : *devices) {
    RETURN_IF_ERROR(Annotate(VerifyUnit(*options_.tree, *real.unit), real.device->resource));
  }
  RETURN_IF_ERROR(options_.ledger->Hold(claim.ref.uid, HeldOf(*devices)));
  const absl::Status status = WriteClaimFiles(options_.places, claim, *devices);
  options_.ledger->Stands(claim.ref.uid);
  RETURN_IF_ERROR(status);
  return MakeAnswer(options_.places.driver, claim);
}

absl::Status ClaimDesk::Unprepare(const ClaimRef& claim) {
  if (!IsPlainUid(claim.uid)) return absl::OkStatus();  // nothing was prepared under such a name
  const absl::Time began = MonotonicNow();
  const std::vector<std::string> units = UnitsOf(claim.uid);
  const absl::Status status = TakeBack(claim.uid);
  if (!units.empty() || !status.ok()) {
    Tell({.kind = status.ok() ? ClaimEvent::Kind::kUnprepared : ClaimEvent::Kind::kUnprepareFailed,
          .claim = claim,
          .units = units,
          .text = Message(status),
          .took = MonotonicNow() - began});
  }
  return status;
}

// Also a spec in another directory, from before the setting was changed.
absl::Status ClaimDesk::RemoveFilesOf(const std::string& uid) const {
  const PreparedClaims claims = prepared();
  if (const auto found = claims.find(uid); found != claims.end() && !found->second.driver.empty()) {
    ClaimPlaces then = options_.places;
    then.driver = found->second.driver;
    then.cdi_dir = found->second.cdi_dir;
    RETURN_IF_ERROR(RemoveClaimFiles(then, uid));
  }
  return RemoveClaimFiles(options_.places, uid);
}

absl::Status ClaimDesk::TakeBack(const std::string& uid) {
  const MutexLock lock(work_mutex_);
  const auto [first, last] = waiting_.equal_range(uid);
  for (auto it = first; it != last; ++it) it->second->cancelled = true;
  RETURN_IF_ERROR(RemoveFilesOf(uid));
  RETURN_IF_ERROR(store_.Forget(uid));
  {
    const MutexLock state(state_mutex_);
    prepared_.erase(uid);
  }
  options_.ledger->LetGo(uid);
  return absl::OkStatus();
}

}  // namespace vfio_agent
