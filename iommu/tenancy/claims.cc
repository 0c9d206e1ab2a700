#include "iommu/tenancy/claims.h"

#include <algorithm>

namespace vfio_agent {

void AddParts(const Parts& more, Parts& parts) {
  for (const auto& [unit, devices] : more) {
    std::vector<PciAddress>& known = parts[unit];
    for (const PciAddress& device : devices) {
      if (std::ranges::count(known, device) == 0) known.push_back(device);
    }
  }
}

bool HasPart(const Parts& parts, const PodClaim& claim, const PciAddress& device) {
  const auto found = parts.find({claim.resource, claim.unit});
  return found != parts.end() && std::ranges::count(found->second, device) > 0;
}

}  // namespace vfio_agent
