#include "iommu/tenancy/tenancy.h"

#include <algorithm>

namespace vfio_agent {
namespace {

constexpr absl::Duration kUntilListed = absl::Seconds(10);

bool IsListed(const Grant& grant, const PodClaims& claims) {
  return std::ranges::any_of(claims.list, [&grant](const PodClaim& claim) {
    return claim.unit == grant.unit && IsCertain(claim);
  });
}

bool IsOpen(const Grant& grant, const Tenancy& tenancy, absl::Time looked) {
  if (grant.at >= looked) return true;
  if (IsListed(grant, tenancy.claims)) return false;
  const absl::Time due = grant.at + kUntilListed;
  return looked < due || tenancy.opened < due || tenancy.open.contains(grant.group);
}

}  // namespace

std::vector<Grant> OpenGrants(const std::vector<Grant>& grants, const Tenancy& tenancy,
                              absl::Time looked) {
  if (!tenancy.claims.known || !tenancy.silent.empty()) return grants;
  std::vector<Grant> open;
  std::ranges::copy_if(grants, std::back_inserter(open),
                       [&](const Grant& grant) { return IsOpen(grant, tenancy, looked); });
  return open;
}

}  // namespace vfio_agent
