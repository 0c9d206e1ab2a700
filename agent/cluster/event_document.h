// Events as events.k8s.io/v1 has them. Pure.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "agent/cluster/api_json.h"
#include "agent/cluster/cluster.h"

namespace vfio_agent {

// Who posts.
struct Reporter {
  std::string node;
  std::string node_uid;  // empty: not known
  std::string instance;
};

// OK, or why no API server would take it.
absl::Status CheckEvent(const ClusterEvent& event);

// Where the events of that namespace are, and this one.
std::string EventsPath(const ClusterEvent& event);
std::string EventPath(const ClusterEvent& event);

ApiJson EventDocument(const ClusterEvent& event, const Reporter& reporter);
// A merge patch that tells how often it has been by now.
ApiJson SeriesPatch(const ClusterEvent& event);

}  // namespace vfio_agent
