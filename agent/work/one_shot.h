// One-shot runs of jobs, for `bind` and `release`: to the end, then back to the caller.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "agent/session.h"
#include "agent/work/jobs.h"

namespace vfio_agent {

// How far a run is, and as one line: "2 of 8 groups done, 3s: writing to group 12, 15".
struct Progress {
  size_t done = 0;
  size_t all = 0;
  std::set<int> at_work;
  absl::Duration took;
};
std::string ProgressText(const Progress& progress);

// Why a job must not begin, asked for right before it does; empty where it may.
using Objections = std::function<std::vector<Refusal>(const Job&)>;

// Runs `list`, at most `parallel` at a time, until each has finished or is stuck. A stuck job's
// child is left to the kernel. vGPU types are set on one function of a card after the other, the
// lowest address first, and not where it lists them no more (no_room). Nothing is begun in a copy
// of a node, where no kernel acts. Where standard error is a terminal, a line there tells how far
// it is.
std::vector<JobEvent> RunJobs(std::vector<Job> list, const Session& session,
                              const Objections& object);

}  // namespace vfio_agent
