// The part of Agent that tells the cluster, where there is an API server, and hears of the Node.
#include "absl/strings/str_format.h"
#include "agent/cluster/node_labels.h"
#include "agent/daemon/agent.h"
#include "agent/daemon/report.h"

namespace vfio_agent {

void Agent::OpenCluster() {
  cluster_.Start(session_.settings(), session_.tree().is_host(), [this] { loop_.Wake(); });
  NoteNoLabel();
}

// Otherwise such an agent would wait without a word.
void Agent::NoteNoLabel() {
  if (mode_.label().empty() || cluster_.on()) return;
  Say(Note(absl::StrFormat(
      "mode.fromNodeLabel: nobody tells this agent the node's label %s, as it goes without the API "
      "server, so nothing is bound or given back: %s",
      mode_.label(), kNoApiRemedy)));
}

// After the status that it is made of is known. What is told next is in force until then.
void Agent::TellCluster() {
  for (const std::string& note : cluster_.TakeNotes()) Say(Note(note));
  if (!cluster_.on()) return;
  // A Node that is not there (yet) says nothing of its labels.
  const std::optional<SeenNode> node = cluster_.TakeNode();
  if (node && !node->uid.empty()) {
    node_labels_ = node->labels;
    SetLabels(node->labels);
  }
  const std::shared_ptr<const AgentStatus> status = book_.Newest();
  cluster_.Tell(session_.settings(), {.status = *status, .labels = NodeLabelsOf(labels_)});
}

}  // namespace vfio_agent
