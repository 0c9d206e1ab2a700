// ClusterTeller: what of the running daemon the cluster is told, where there is an API server.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "agent/cluster/cluster.h"
#include "agent/cluster/event_series.h"
#include "agent/cluster/ready_condition.h"
#include "agent/cluster/waiting_pods.h"
#include "agent/config/settings.h"
#include "agent/daemon/event.h"
#include "deviceplugin/status/agent_status.h"
#include "iommu/tenancy/claims.h"

namespace vfio_agent {

// The name that this node has in the cluster: api.nodeName, NODE_NAME or, as the kubelet does it,
// the host's name in lower case. NotFound where none of them is one.
absl::StatusOr<std::string> NodeNameOf(const Settings& settings);

// Does nothing and costs nothing where there is no API server. For the loop's thread.
class ClusterTeller {
 public:
  using Clocks = EventSeries::Clocks;

  // `wake` is called from any thread when Take…() has something, until End() has returned. Without
  // a token and a server that somebody has named there is nothing to say about it: a node of no
  // cluster is one too. `is_host`: false for another root, whose node is told of only to a server
  // that is named.
  void Start(const Settings& settings, bool is_host, std::function<void()> wake);
  bool on() const { return cluster_ != nullptr; }

  // A line of the log has happened. `again`: one that the log leaves out, for it has said the same.
  void Saw(const Event& event, bool again = false);
  // True where a look at the kubelet's pods would tell whom something is about.
  bool WantsPods() const { return !waiting_.empty(); }
  void SawPods(const PodClaims& claims, const std::string& device_plugin_dir);

  struct Said {
    const AgentStatus& status;
    std::map<std::string, std::string> labels;  // for whoever keeps them, by the settings
  };
  // At the end of each turn.
  void Tell(const Settings& settings, const Said& said);
  // When Tell() has something without anything having happened.
  absl::Time due() const;

  // What deserves a line of log, once.
  std::vector<std::string> TakeNotes();
  std::optional<SeenNode> TakeNode();
  ApiStatus Status() const;

  // The last words, then the end of the thread, within `limit`. `released`: nothing of this node is
  // the agent's any more.
  void End(const Settings& settings, bool released, absl::Duration limit);

 private:
  bool IsDoubtful(const NodeCondition& condition, absl::Time now);

  std::string node_;
  std::unique_ptr<Cluster> cluster_;
  std::vector<std::string> notes_;
  EventSeries series_{""};
  WaitingPods waiting_;
  std::optional<WantedNode> wanted_;  // by the cluster's thread, which writes once a second at most
  absl::Time doubt_until_ = absl::InfinitePast();  // InfinitePast: there is none
};

}  // namespace vfio_agent
