// Offer: what one resource advertises to the kubelet, as an immutable value.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "iommu/plan/plan.h"

namespace vfio_agent {

// One kubelet device id with all that an answer about it needs, so that the servers' threads need
// nothing else.
struct OfferedUnit {
  std::string id;                      // address of the primary function: "0000:11:00.0"
  std::vector<std::string> addresses;  // what the environment variable names; usually just id
  int group = 0;
  std::optional<int> numa_node;      // nullopt: the kernel says -1
  std::vector<std::string> path;     // bridges from the root to the device, for closeness
  std::vector<std::string> members;  // endpoints of the group: all on a vfio driver when healthy
  // Device nodes that are there: "/dev/vfio/vfio", "/dev/vfio/29", "/dev/vfio/devices/vfio0".
  std::vector<std::string> nodes;
  bool healthy = false;
  std::string reason;  // why it is not healthy
  // Not healthy, since nobody else is to get it: the pod that has it may start with it again.
  bool kept = false;
  std::string holder;  // pods that have it: "pod ns/name (container c)"; for people
  // Since when it is listed only because a pod may have it still; InfiniteFuture: it is not so.
  absl::Time withdrawn = absl::InfiniteFuture();
  bool was_fit = false;  // of a withdrawn one: its pod could start with it until then
  // As Unit::groups: all of a unit that is several groups, else empty.
  std::vector<int> groups;
  std::vector<std::string> pairs;  // "0000:11:00.0=0000:12:00.0", as Unit::pairs
  // Of a mediated device, its type's id: `id` and `addresses` are its uuid then.
  std::string mdev_type;
  std::string vgpu_type;  // as Unit::vgpu_type
  std::string type_name;  // as Unit::type_name
  bool operator==(const OfferedUnit&) const = default;
};

// Every group of the unit.
std::vector<int> GroupsOf(const OfferedUnit& unit);

struct Offer {
  std::string resource;            // "nvidia.com/GH100_H100_SXM5_80GB"
  bool numa = true;                // tell the kubelet NUMA nodes
  bool cdi_names = false;          // name CDI devices in answers
  std::vector<OfferedUnit> units;  // sorted by (numa node, address): the order of every answer
  std::vector<std::vector<std::string>> partitions;  // as those of Resource
  bool only_partitions = false;
  std::string partitions_fault;
  std::vector<EgmShare> egm;  // those of the plan that containers with units of this can have
  Serve serve = Serve::kDevicePlugin;
  bool operator==(const Offer&) const = default;
};

struct OfferOptions {
  Serve serve = Serve::kDevicePlugin;  // the resources that are served so, and no others
  bool iommufd = false;                // /dev/iommu with what has a cdev
  bool cdi_names = false;              // as Offer::cdi_names
};

// The offers of a plan. Units that are ready or held are healthy, but for those that somebody holds
// who came the other way: a ResourceClaim, or a pod of the device plugin. One that waits to be
// bound is not offered at all.
//
// One that `before` offered and that the plan has not, or not any more in this state or under this
// resource, stays in the list as unhealthy, since the kubelet may have allocated it (contract rule
// R28): until no pod has it by `tenancy`, and ten seconds besides. No id is in two lists (R25): a
// unit that another resource's list still has must wait. `tenancy` may be null: then pods may have
// anything.
std::vector<Offer> MakeOffers(const Plan& plan, const NodeFacts& facts,
                              const std::vector<Offer>& before, const OfferOptions& options,
                              const Tenancy* tenancy, absl::Time now);

// True where a list has units only because a pod may have them still.
bool HasWithdrawn(const std::vector<Offer>& offers);

}  // namespace vfio_agent
