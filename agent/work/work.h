// Work: the jobs that a picture asks for.
#pragma once

#include <string>
#include <vector>

#include "agent/session.h"
#include "agent/work/job.h"

namespace vfio_agent {

// The groups to be bound; what an agent that was killed had begun and nobody wants finished, to be
// put back; and FinishedWork(). One job for each group at most.
std::vector<Job> PlanWork(const Picture& picture, const std::string& boot_id);

// Of groups that the plan shows as bound: records that do not say so yet, to be closed. Jobs
// without steps.
std::vector<Job> FinishedWork(const Picture& picture);

// A vGPU's type is taken away: more than the configuration asks for.
bool TakesVgpuAway(const Job& job);

// "0000:01:00.0=vfio-pci,0000:01:00.1=none": where the devices of `job` are now. Reads links only,
// which never block.
std::string DriversNow(const Tree& tree, const Job& job);

}  // namespace vfio_agent
