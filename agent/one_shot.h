// One-shot runs of jobs, for `bind` and `release`: to the end, then back to the caller.
#pragma once

#include <string>
#include <vector>

#include "agent/jobs.h"
#include "agent/origins.h"
#include "agent/session.h"

namespace vfio_agent {

// Runs `list`, at most `parallel` at a time, until each has finished or is stuck. A stuck job's
// child is left to the kernel.
std::vector<JobEvent> RunJobs(std::vector<Job> list, const Session& session);

// The store of this session's origins.
OriginStore OpenOrigins(const Session& session);

// Notes where every device that `actions` will unbind or override is now. On an error nothing may
// be written to the kernel.
absl::Status NoteOrigins(const std::vector<Action>& actions, const NodeFacts& facts,
                         OriginStore& store);

// Gives `job` the origins of its devices, for the way back.
absl::Status AddOrigins(Job& job, const OriginStore& store);

// Forgets the origins of the devices that a finished release moved.
absl::Status ForgetOrigins(const std::vector<Action>& actions, OriginStore& store);

}  // namespace vfio_agent
