#include "agent/tenant_watch.h"

#include <algorithm>
#include <map>
#include <set>

namespace vfio_agent {

void TenantWatch::Ask(absl::Time now) {
  due_ = std::min(due_, now + kFirst);
  wait_ = kFirst;
}

void TenantWatch::Looked(absl::Time now, bool settled) {
  due_ = settled ? absl::InfiniteFuture() : now + wait_;
  wait_ = settled ? kFirst : std::min(wait_ * 2, kLongest);
}

bool IsSettled(const Picture& picture, const std::vector<Offer>& offers) {
  const Tenancy& tenancy = *picture.custody.tenancy;
  if (!tenancy.silent.empty() || !tenancy.grants.empty() || HasWithdrawn(offers)) return false;
  return std::ranges::none_of(picture.plan.resources, [&](const Resource& resource) {
    return std::ranges::any_of(resource.units, [&](const Unit& unit) {
      if (unit.state == UnitState::kWithheld) return true;
      return unit.state == UnitState::kUnhealthy && tenancy.open.contains(unit.group.value_or(-1));
    });
  });
}

bool HaveSiblings(const std::vector<Offer>& offers, const std::vector<std::string>& ids) {
  std::map<int, int> units;  // of each group
  std::set<int> given;
  for (const Offer& offer : offers) {
    for (const OfferedUnit& unit : offer.units) {
      ++units[unit.group];
      if (std::ranges::count(ids, unit.id) > 0) given.insert(unit.group);
    }
  }
  return std::ranges::any_of(given, [&units](int group) { return units[group] > 1; });
}

}  // namespace vfio_agent
