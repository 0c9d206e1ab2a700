// Inquirer: looks at what a plan would touch, before anything of it is written.
#pragma once

#include "agent/override_reader.h"
#include "agent/settings.h"
#include "agent/use_reader.h"
#include "iommu/plan.h"

namespace vfio_agent {

class Tree;

// Costs two short-lived children, a walk over all processes and perhaps a question to the kubelet,
// so it is for pictures with something to write, not for each one. One thread.
class Inquirer {
 public:
  // Answers `question` about the node that `facts` are of. The kubelet is asked only where a group
  // could be a pod's. Each of the three waits a second at most where the node is not well (for a
  // driver_override a quarter of one, for each), and not again for the same reason at once.
  Inquiry Ask(const Tree& tree, const NodeFacts& facts, const Question& question,
              const Custody& custody, const Settings& settings);

  // Who has what of the groups that are with a vfio driver: what pods have, and with `processes`
  // which groups are open, by a walk over all processes in a child. Of what does not answer, what
  // `before` says stays.
  Tenancy LookAtTenants(const Tree& tree, const NodeFacts& facts, bool processes,
                        const std::optional<Tenancy>& before, const Settings& settings);

  // False where something did not answer the last time, so that asking again may help.
  bool answered() const { return answered_; }

 private:
  PodClaims AskKubelet(const Tree& tree, const Settings& settings);

  bool answered_ = true;
  UseReader uses_;
  OverrideReader overrides_;
  PodClaims last_unknown_;
  absl::Time ask_again_ = absl::InfinitePast();
};

}  // namespace vfio_agent
