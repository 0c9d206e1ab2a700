// What a command leaves to the daemon of the node, should one run.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/outlets/status.h"
#include "iommu/plan/plan.h"

namespace vfio_agent {

// Nothing is taken from under a daemon that offers it: the kubelet could give it to a pod in the
// moment between our look and our write, and the daemon would take it back at once. What it offers
// is for it to say: our configuration may be a newer one.
class BesideDaemon {
 public:
  // Waits a few seconds at most for a daemon that does not answer.
  static BesideDaemon Ask(const std::string& state_dir);

  // Why it cannot do without `groups`, as of when it was asked; one for each group at most.
  std::vector<Refusal> Objections(const std::vector<int>& groups) const;

 private:
  explicit BesideDaemon(absl::StatusOr<AgentStatus> answer) : answer_(std::move(answer)) {}

  absl::StatusOr<AgentStatus> answer_;
  std::optional<pid_t> holder_;  // of the node's lock
};

// Why nobody but the daemon takes vGPU types away; empty where none runs.
std::vector<Refusal> WhyLeftToDaemon(const std::string& state_dir, int group,
                                     const PciAddress& function);

}  // namespace vfio_agent
