#include "deviceplugin/offer/ledger.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "iommu/code.h"
#include "sysfs/clock.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

using Units = std::vector<const OfferedUnit*>;
using UnitsByGroup = std::map<int, std::vector<std::string>>;

UnitsByGroup ByGroup(const Units& units) {
  UnitsByGroup groups;
  for (const OfferedUnit* unit : units) {
    for (const int group : GroupsOf(*unit)) groups[group].push_back(unit->id);
  }
  return groups;
}

bool AnyOf(const std::vector<std::string>& ids, const std::vector<Grant>& grants) {
  return std::ranges::any_of(
      grants, [&ids](const Grant& grant) { return std::ranges::count(ids, grant.unit) > 0; });
}

absl::Status Split(int group, const std::string& out, const std::string& wanted) {
  return absl::FailedPreconditionError(absl::StrFormat(
      "%s: %s of IOMMU group %d went to another container, so %s cannot be given: a group has one "
      "owner",
      CodeName(Code::kGroupSplit), out, group, wanted));
}

}  // namespace

void Ledger::Answered(const std::string& resource, const OfferedUnit& unit) {
  const Answer answer = AnswerAbout(resource, unit);
  Answer& last = answers_[unit.id];
  if (last == answer) return;
  last = answer;
  ++version_;
}

void Ledger::Learn(const PodClaims& claims, const std::vector<Offer>& offers) {
  const MutexLock lock(mutex_);
  for (const Offer& offer : offers) {
    for (const OfferedUnit& unit : offer.units) {
      const bool theirs = std::ranges::any_of(claims.list, [&](const PodClaim& claim) {
        return !IsResourceClaim(claim) && claim.unit == unit.id && claim.resource == offer.resource;
      });
      if (theirs && !answers_.contains(unit.id)) Answered(offer.resource, unit);
    }
  }
}

absl::Status Ledger::CheckUnclaimed(const UnitsByGroup& wanted) const {
  for (const auto& [group, ids] : wanted) {
    const auto claim = claims_.find(group);
    if (claim == claims_.end()) continue;
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s: IOMMU group %d went to the ResourceClaim with uid %s, so %s cannot be given: a group "
        "has one owner",
        CodeName(Code::kGroupSplit), group, claim->second, ids.front()));
  }
  return absl::OkStatus();
}

absl::Status Ledger::HoldGroups(const std::string& claim, const std::vector<Held>& units) {
  UnitsByGroup groups;
  for (const Held& held : units) groups.merge(ByGroup({held.unit}));
  for (const auto& [group, ids] : groups) {
    if (const auto out = grants_.find(group); out != grants_.end()) {
      return Split(group, out->second.front().unit, ids.front());
    }
    const auto owner = claims_.find(group);
    if (owner == claims_.end() || owner->second == claim) continue;
    RETURN_IF_ERROR(CheckUnclaimed({{group, ids}}));
  }
  for (const auto& entry : groups) claims_[entry.first] = claim;
  return absl::OkStatus();
}

absl::Status Ledger::Hold(const std::string& claim, const std::vector<Held>& units) {
  const MutexLock lock(mutex_);
  RETURN_IF_ERROR(HoldGroups(claim, units));
  ++turn_;
  std::vector<Grant>& grants = claim_grants_[claim];
  grants.clear();
  for (const Held& held : units) {
    for (const int group : GroupsOf(*held.unit)) {
      grants.push_back({.resource = held.resource,
                        .unit = held.unit->id,
                        .group = group,
                        .turn = turn_,
                        .at = absl::InfiniteFuture()});
    }
    Answered(held.resource, *held.unit);
  }
  return absl::OkStatus();
}

void Ledger::Stands(const std::string& claim) {
  const MutexLock lock(mutex_);
  const auto found = claim_grants_.find(claim);
  if (found == claim_grants_.end()) return;
  for (Grant& grant : found->second) grant.at = MonotonicNow();
}

absl::Status Ledger::HoldAgain(const std::string& claim, const std::vector<Held>& units) {
  const MutexLock lock(mutex_);
  return HoldGroups(claim, units);
}

void Ledger::LetGo(const std::string& claim) {
  const MutexLock lock(mutex_);
  claim_grants_.erase(claim);
  std::erase_if(claims_, [&claim](const auto& entry) { return entry.second == claim; });
}

absl::Status Ledger::Take(const std::string& resource, const std::vector<Units>& containers) {
  const MutexLock lock(mutex_);
  UnitsByGroup called;  // by the containers of this call that were looked at already
  for (const Units& units : containers) {
    RETURN_IF_ERROR(CheckUnclaimed(ByGroup(units)));
    for (const auto& [group, ids] : ByGroup(units)) {
      if (const auto other = called.find(group); other != called.end()) {
        return Split(group, other->second.front(), ids.front());
      }
      const auto out = grants_.find(group);
      if (out == grants_.end() || AnyOf(ids, out->second)) continue;
      return Split(group, out->second.front().unit, ids.front());
    }
    called.merge(ByGroup(units));
  }
  ++turn_;
  const absl::Time now = MonotonicNow();
  for (const auto& entry : called) grants_[entry.first].clear();
  for (const Units& units : containers) {
    for (const OfferedUnit* unit : units) {
      for (const int group : GroupsOf(*unit)) {
        grants_[group].push_back(
            {.resource = resource, .unit = unit->id, .group = group, .turn = turn_, .at = now});
      }
      Answered(resource, *unit);
    }
  }
  return absl::OkStatus();
}

void Ledger::GiveBack(const std::vector<Units>& containers) {
  const MutexLock lock(mutex_);
  for (const Units& units : containers) {
    for (const auto& entry : ByGroup(units)) grants_.erase(entry.first);
  }
}

absl::Status Ledger::Start(const std::string& resource, const Units& units) {
  const MutexLock lock(mutex_);
  RETURN_IF_ERROR(CheckUnclaimed(ByGroup(units)));
  for (const auto& [group, ids] : ByGroup(units)) {
    const auto out = grants_.find(group);
    if (out == grants_.end() || AnyOf(ids, out->second)) continue;
    return Split(group, out->second.front().unit, ids.front());
  }
  ++turn_;
  const absl::Time now = MonotonicNow();
  for (const OfferedUnit* unit : units) {
    for (const int group : GroupsOf(*unit)) {
      std::vector<Grant>& out = grants_[group];
      std::erase_if(out, [unit](const Grant& grant) { return grant.unit == unit->id; });
      out.push_back(
          {.resource = resource, .unit = unit->id, .group = group, .turn = turn_, .at = now});
    }
  }
  return absl::OkStatus();
}

absl::Status Ledger::CheckUnchanged(const OfferedUnit& unit) const {
  const MutexLock lock(mutex_);
  const auto last = answers_.find(unit.id);
  if (last == answers_.end()) return absl::OkStatus();
  const std::string difference = Difference(last->second, unit);
  if (difference.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "%s: %s: the kubelet starts this container with an answer from before a change (%s): delete "
      "the pod, and a new one gets what is there now",
      unit.id, CodeName(Code::kGroupChanged), difference));
}

uint64_t Ledger::turn() const {
  const MutexLock lock(mutex_);
  return turn_;
}

void Ledger::Told(uint64_t turn) {
  const MutexLock lock(mutex_);
  told_ = turn;
}

bool Ledger::IsNews(const std::string& unit) const {
  const MutexLock lock(mutex_);
  for (const auto& entry : grants_) {
    for (const Grant& grant : entry.second) {
      if (grant.unit == unit && grant.turn > told_) return true;
    }
  }
  return false;
}

std::vector<Grant> Ledger::Grants() const {
  const MutexLock lock(mutex_);
  std::vector<Grant> all;
  for (const auto& entry : grants_) {
    all.insert(all.end(), entry.second.begin(), entry.second.end());
  }
  for (const auto& entry : claim_grants_) {
    all.insert(all.end(), entry.second.begin(), entry.second.end());
  }
  return all;
}

void Ledger::Drop(const std::vector<Grant>& settled) {
  const MutexLock lock(mutex_);
  for (const Grant& grant : settled) {
    const auto out = grants_.find(grant.group);
    if (out == grants_.end()) continue;
    std::erase(out->second, grant);
    if (out->second.empty()) grants_.erase(out);
  }
  for (auto& entry : claim_grants_) {
    std::erase_if(entry.second, [&settled](const Grant& grant) {
      return std::ranges::count(settled, grant) > 0;
    });
  }
  std::erase_if(claim_grants_, [](const auto& entry) { return entry.second.empty(); });
}

Answers Ledger::answers() const {
  const MutexLock lock(mutex_);
  return answers_;
}

uint64_t Ledger::version() const {
  const MutexLock lock(mutex_);
  return version_;
}

}  // namespace vfio_agent
