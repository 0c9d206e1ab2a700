// One-shot runs of jobs, for `bind` and `release`: to the end, then back to the caller.
#pragma once

#include <vector>

#include "agent/session.h"
#include "agent/work/jobs.h"

namespace vfio_agent {

// Runs `list`, at most `parallel` at a time, until each has finished or is stuck. A stuck job's
// child is left to the kernel.
std::vector<JobEvent> RunJobs(std::vector<Job> list, const Session& session);

}  // namespace vfio_agent
