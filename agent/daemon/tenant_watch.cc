#include "agent/daemon/tenant_watch.h"

#include <algorithm>
#include <map>
#include <set>

namespace vfio_agent {
namespace {

// Its pod ends without an event, and then what it hindered can be bound.
bool RefusedForRivals(const Picture& picture) {
  return !picture.custody.tenancy->claims.rivals.empty() &&
         std::ranges::count(picture.plan.refusals, Code::kForeignManager, &Refusal::code) > 0;
}

}  // namespace

void TenantWatch::Ask(absl::Time now) {
  due_ = std::min(due_, now + kFirst);
  wait_ = kFirst;
}

void TenantWatch::AskAll(absl::Time now) {
  Ask(now);
  processes_due_ = absl::InfinitePast();
}

void TenantWatch::Looked(absl::Time now, bool processes, Open open, absl::Duration resync) {
  const absl::Time soon = now + std::min(wait_, resync);
  due_ = open == Open::kNothing ? now + resync : soon;
  if (processes) processes_due_ = now + resync;
  if (open == Open::kProcesses) processes_due_ = std::min(processes_due_, soon);
  wait_ = open == Open::kNothing ? kFirst : std::min(wait_ * 2, kLongest);
}

TenantWatch::Open WhatIsOpen(const Picture& picture, const std::vector<Offer>& offers) {
  const Tenancy& tenancy = *picture.custody.tenancy;
  // A pod that is not listed, perhaps never will be, and whose processes may live.
  if (!tenancy.grants.empty() && tenancy.silent.empty()) return TenantWatch::Open::kProcesses;
  TenantWatch::Open open = TenantWatch::Open::kNothing;
  if (!tenancy.silent.empty() || HasWithdrawn(offers) || RefusedForRivals(picture)) {
    open = TenantWatch::Open::kPods;
  }
  for (const Resource& resource : picture.plan.resources) {
    for (const Unit& unit : resource.units) {
      if (unit.state == UnitState::kWithheld) open = TenantWatch::Open::kPods;
      const bool sick = unit.state == UnitState::kUnhealthy;
      for (const int group : GroupsOf(unit)) {
        if (sick && tenancy.open.contains(group)) return TenantWatch::Open::kProcesses;
      }
    }
  }
  return open;
}

bool HaveSiblings(const std::vector<Offer>& offers, const std::vector<std::string>& ids) {
  std::map<int, int> units;  // of each group
  std::set<int> given;
  for (const Offer& offer : offers) {
    for (const OfferedUnit& unit : offer.units) {
      for (const int group : GroupsOf(unit)) {
        ++units[group];
        if (std::ranges::count(ids, unit.id) > 0) given.insert(group);
      }
    }
  }
  return std::ranges::any_of(given, [&units](int group) { return units[group] > 1; });
}

}  // namespace vfio_agent
