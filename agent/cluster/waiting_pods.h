// WaitingPods: what went wrong for a pod, until it is known for which.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "agent/cluster/cluster.h"
#include "agent/cluster/node_events.h"
#include "iommu/tenancy/claims.h"

namespace vfio_agent {

// PreStartContainer does not name the pod; the kubelet's list of pods may, a moment later. After
// fifteen seconds nobody will. A value; the times come from outside.
class WaitingPods {
 public:
  // An event without units is about no pod.
  void Add(const NodeEvent& event, absl::Time now);
  bool empty() const { return waiting_.empty(); }

  // Those whose pod `claims`, asked for just now, names: the only pod that has a unit of what was
  // asked for. `uid_of` is asked for these alone.
  using UidOf = std::function<std::string(const PodClaim& claim)>;
  std::vector<std::pair<NodeEvent, PodRef>> Match(const PodClaims& claims, const UidOf& uid_of,
                                                  absl::Time now);

 private:
  struct Waiting {
    NodeEvent event;
    absl::Time since;
  };
  std::vector<Waiting> waiting_;
};

}  // namespace vfio_agent
