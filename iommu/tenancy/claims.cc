#include "iommu/tenancy/claims.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "sysfs/device/mdev.h"

namespace vfio_agent {

std::string NameOf(const PodClaim& claim) {
  if (!claim.pod_namespace.empty()) return claim.pod_namespace + "/" + claim.pod;
  return claim.pod.empty() ? "a pod perhaps" : "uid " + claim.pod;
}

std::string UnitOfId(const std::string& id) {
  if (IsUuid(id)) return absl::AsciiStrToLower(id);
  const auto address = PciAddress::Parse(id);
  return address.ok() ? address->ToString() : "";
}

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
