// Job: the writes of one group, as a value.
#pragma once

#include <string>
#include <vector>

#include "agent/privileges/rights.h"
#include "iommu/plan/release.h"

namespace vfio_agent {

// What to do where the agent cannot write below its state directory.
inline constexpr char kStateRemedy[] =
    "make the state directory (stateDir) a directory with room that the agent may write to, or "
    "choose another with --state-dir";

enum class JobKind { kBind, kRelease };

struct Job {
  int group = 0;  // its JobKey()
  JobKind kind = JobKind::kBind;
  std::vector<Action> actions;
  // What to journal before each step. A bind has a record for each of its devices; a release only
  // for those that this agent has taken.
  Records records;
  // The journal's records of these devices before the job: a bind that fails and is put back
  // leaves them as they were, as does a release that fails before it has moved anything.
  Records earlier;
  // Guards that an operator has overruled for it: "in-use-network 0000:18:00.0". Said each time.
  std::vector<std::string> overruled;
};

// What the steps of `actions` from the one at `step` on ask the kernel for. Its own drivers ask for
// no capability of whoever unbinds or probes; only a module wants one. What must read more than
// that has been read before there was a job.
Rights RightsFrom(const std::vector<Action>& actions, size_t step);

// The bind of `group`, with the records of its devices from facts and inquiry.
Job MakeBindJob(const GroupPlan& group, const NodeFacts& facts, const Custody& custody,
                const std::string& boot_id);

Job MakeReleaseJob(const GroupRelease& release, const Records& records);

}  // namespace vfio_agent
