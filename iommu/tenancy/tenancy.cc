#include "iommu/tenancy/tenancy.h"

#include <algorithm>

namespace vfio_agent {
namespace {

constexpr absl::Duration kUntilListed = absl::Seconds(10);

bool IsOpen(const Grant& grant, const Tenancy& tenancy, absl::Time looked) {
  if (grant.at >= looked) return true;
  if (std::ranges::count(tenancy.claims.list, grant.unit, &PodClaim::unit) > 0) return false;
  return looked - grant.at < kUntilListed || tenancy.open.contains(grant.group);
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
