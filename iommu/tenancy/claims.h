// PodClaims: which units pods have, as the kubelet says. A value; the kubelet is asked elsewhere.
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sysfs/device/pci_address.h"

namespace vfio_agent {

// One device id of one container; or of a ResourceClaim, where `container` is empty and `pod` is
// the claim's name. Of a pod whose name is not known `pod_namespace` is empty, and `pod` is its uid
// or, where there may be none at all, empty.
struct PodClaim {
  std::string pod_namespace;
  std::string pod;
  std::string container;
  std::string resource;  // "nvidia.com/GH100_H100_SXM5_80GB"
  std::string unit;      // the device id: an address or a uuid, as the kernel spells it
  auto operator<=>(const PodClaim&) const = default;
};

// The container of a claim that may be none.
inline constexpr char kPerhaps[] = "?";

// A container's that the kubelet lists: not one that only its checkpoint has, or an old answer.
inline bool IsCertain(const PodClaim& claim) {
  return !claim.pod_namespace.empty() || claim.container.empty();
}

// "default/vm1"; "uid 0f3c…" or "a pod perhaps" where it has no known name.
std::string NameOf(const PodClaim& claim);

// The unit that a device id means, as units are spelt: a function, or a mediated device. Empty for
// another plugin's.
std::string UnitOfId(const std::string& id);

inline bool IsResourceClaim(const PodClaim& claim) { return claim.container.empty(); }

// True for the claim of a unit that has it as what it is offered as now: a container's is for one
// of a resource, a ResourceClaim's for the device, whatever its resource is called by now.
inline bool IsClaimFor(const PodClaim& claim, const std::string& resource) {
  return IsResourceClaim(claim) || claim.resource == resource;
}

// What one id stands for besides its own device, by resource and id: the kubelet knows a unit of
// several devices by one of them, and whoever has that has the others.
using Parts = std::map<std::pair<std::string, std::string>, std::vector<PciAddress>>;

struct PodClaims {
  // False where there is a kubelet that does not answer: then any unit may be claimed. A node
  // without a kubelet is known to have no claims.
  bool known = true;
  std::string why_unknown;     // a sentence; empty where known
  std::vector<PodClaim> list;  // sorted; empty where not known
  // The units that the kubelet counts as healthy, by resource; nullopt where it does not tell.
  std::optional<std::map<std::string, std::set<std::string>>> allocatable;
  // Pods of other managers of devices (iommu/tenancy/rival.h), "namespace/name"; sorted.
  std::vector<std::string> rivals;
  // What ResourceClaims were given, as their records have it: what their units stood for besides
  // their own devices, and all devices that were given in this boot.
  Parts parts;
  std::set<PciAddress> given;
  bool operator==(const PodClaims&) const = default;
};

// Adds what `parts` lacks of `more`.
void AddParts(const Parts& more, Parts& parts);

// True where `device` came with what `claim` is for.
bool HasPart(const Parts& parts, const PodClaim& claim, const PciAddress& device);

}  // namespace vfio_agent
