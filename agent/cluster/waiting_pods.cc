#include "agent/cluster/waiting_pods.h"

#include <algorithm>

namespace vfio_agent {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(15);
constexpr size_t kMost = 64;

// Null where no pod has any of the units, or several have.
const PodClaim* OnlyPod(const NodeEvent& event, const std::vector<PodClaim>& claims) {
  const PodClaim* only = nullptr;
  for (const PodClaim& claim : claims) {
    if (claim.resource != event.resource || claim.pod_namespace.empty()) continue;
    if (std::ranges::count(event.units, claim.unit) == 0) continue;
    if (only != nullptr && (only->pod != claim.pod || only->pod_namespace != claim.pod_namespace)) {
      return nullptr;
    }
    if (only == nullptr) only = &claim;
  }
  return only;
}

}  // namespace

void WaitingPods::Add(const NodeEvent& event, absl::Time now) {
  if (event.units.empty()) return;
  if (waiting_.size() >= kMost) waiting_.erase(waiting_.begin());
  waiting_.push_back({event, now});
}

std::vector<std::pair<NodeEvent, PodRef>> WaitingPods::Match(const PodClaims& claims,
                                                             const UidOf& uid_of, absl::Time now) {
  std::vector<std::pair<NodeEvent, PodRef>> matched;
  std::erase_if(waiting_, [&](const Waiting& waiting) {
    const PodClaim* const pod = claims.known ? OnlyPod(waiting.event, claims.list) : nullptr;
    if (pod == nullptr) return now - waiting.since >= kPatience;
    matched.push_back(
        {waiting.event,
         {.pod_namespace = pod->pod_namespace, .name = pod->pod, .uid = uid_of(*pod)}});
    return true;
  });
  return matched;
}

}  // namespace vfio_agent
