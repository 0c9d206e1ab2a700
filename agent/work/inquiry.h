// Inquirer: looks at what a plan would touch, before anything of it is written.
#pragma once

#include "agent/config/settings.h"
#include "agent/work/override_reader.h"
#include "agent/work/use_reader.h"
#include "iommu/plan/plan.h"

namespace vfio_agent {

class Tree;

// How long what may hang is waited for.
struct Patience {
  absl::Duration uses = absl::Seconds(5);
  absl::Duration each_override = absl::Seconds(2);
};

// Where the kubelet waits meanwhile. Who is cut short looks again.
inline constexpr Patience kBriefPatience = {.uses = absl::Seconds(2),
                                            .each_override = absl::Milliseconds(250)};

// Costs two short-lived children, a walk over all processes and perhaps a question to the kubelet,
// so it is for pictures with something to write, not for each one. One thread.
class Inquirer {
 public:
  void set_patience(const Patience& patience) { patience_ = patience; }

  // Answers `question` about the node that `facts` are of. The kubelet is asked only where a group
  // could be a pod's, and has a second. What does not answer in time is not waited for again, for
  // the same reason, at once.
  Inquiry Ask(const Tree& tree, const NodeFacts& facts, const Question& question,
              const Custody& custody, const Settings& settings);

  struct TenantLook {
    bool processes = true;       // look which groups are open, by a walk over all processes
    bool kubelet_young = false;  // pods that it does not list may be there all the same
  };
  // Who has what of the groups that are with a vfio driver: what pods have, and which groups are
  // open, by a walk in a child; that also where a pod has ended since `before`, since its processes
  // may outlive it. Of what does not answer, what `before` says stays; where the walk does not end,
  // what pods have had that ended counts as open.
  Tenancy LookAtTenants(const Tree& tree, const NodeFacts& facts, const TenantLook& look,
                        const std::optional<Tenancy>& before, const Settings& settings);

  // False where something did not answer the last time, so that asking again may help.
  bool answered() const { return answered_; }

 private:
  // False where the look does not end: what `tenancy` says stays.
  bool ReadOpen(const Tree& tree, const NodeFacts& facts, Tenancy& tenancy);
  PodClaims AskKubelet(const Settings& settings);
  PodClaims ReadClaims(const Tree& tree, const Settings& settings);

  Patience patience_;
  bool answered_ = true;
  UseReader uses_;
  OverrideReader overrides_;
  PodClaims last_unknown_;
  absl::Time ask_again_ = absl::InfinitePast();
};

}  // namespace vfio_agent
