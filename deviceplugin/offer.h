// Offer: what one resource advertises to the kubelet, as an immutable value.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "iommu/plan.h"

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
  std::vector<std::string> nodes;    // device nodes: "/dev/vfio/29", "/dev/vfio/devices/vfio0"
  bool healthy = false;
  std::string reason;  // why it is not healthy
  bool operator==(const OfferedUnit&) const = default;
};

struct Offer {
  std::string resource;            // "nvidia.com/GH100_H100_SXM5_80GB"
  bool numa = true;                // tell the kubelet NUMA nodes
  std::vector<OfferedUnit> units;  // sorted by (numa node, address): the order of every answer
  bool operator==(const Offer&) const = default;
};

// The offers of a plan. Only ready units are healthy. A unit that waits to be bound is not
// offered at all; one that `before` offered and that is no longer ready, or no longer in the plan,
// stays in the list as unhealthy: the kubelet may have allocated it (contract rule R28).
std::vector<Offer> MakeOffers(const Plan& plan, const NodeFacts& facts,
                              const std::vector<Offer>& before);

}  // namespace vfio_agent
