// The part of Agent that tells the cluster, where there is an API server.
#include "agent/cluster/node_labels.h"
#include "agent/daemon/agent.h"
#include "agent/daemon/report.h"

namespace vfio_agent {
namespace {

std::string ModeOf(const Config& config) {
  if (config.passthrough) return "vm-passthrough";
  return config.vgpu ? "vm-vgpu" : "container";
}

}  // namespace

void Agent::OpenCluster() {
  cluster_.Start(session_.settings(), session_.tree().is_host(), [this] { loop_.Wake(); });
}

// After the status that it is made of is known. What is told next is in force until then.
void Agent::TellCluster() {
  for (const std::string& note : cluster_.TakeNotes()) Say(Note(note));
  if (!cluster_.on()) return;
  const Settings& settings = session_.settings();
  // Where NFD makes the labels, they are NFD's to take away as well.
  const bool labels = settings.api_labels && settings.nfd_dir.empty();
  const std::shared_ptr<const AgentStatus> status = book_.Newest();
  cluster_.Tell(settings, {.status = *status,
                           .ready = {.mode = ModeOf(session_.config())},
                           .labels = labels ? NodeLabelsOf(labels_) : NodeLabels()});
}

}  // namespace vfio_agent
