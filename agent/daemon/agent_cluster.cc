// The part of Agent that tells the cluster, where there is an API server, and hears of the Node.
#include "agent/cluster/node_labels.h"
#include "agent/daemon/agent.h"
#include "agent/daemon/report.h"

namespace vfio_agent {

void Agent::OpenCluster() {
  cluster_.Start(session_.settings(), session_.tree().is_host(), [this] { loop_.Wake(); });
}

// After the status that it is made of is known. What is told next is in force until then.
void Agent::TellCluster() {
  for (const std::string& note : cluster_.TakeNotes()) Say(Note(note));
  if (!cluster_.on()) return;
  // A Node that is not there (yet) says nothing of its labels.
  const std::optional<SeenNode> node = cluster_.TakeNode();
  if (node && !node->uid.empty()) SetLabels(node->labels);
  const Settings& settings = session_.settings();
  // Where NFD makes the labels, they are NFD's to take away as well.
  const bool labels = settings.api_labels && settings.nfd_dir.empty();
  const std::shared_ptr<const AgentStatus> status = book_.Newest();
  cluster_.Tell(settings,
                {.status = *status, .labels = labels ? NodeLabelsOf(labels_) : NodeLabels()});
}

}  // namespace vfio_agent
