// Executor: carries out one job, in a child process: journal, writes, and the way back.
#pragma once

#include <functional>
#include <optional>

#include "absl/time/time.h"
#include "agent/work/job.h"
#include "agent/work/journal.h"
#include "iommu/apply.h"

namespace vfio_agent {

struct Execution {
  Outcome outcome;
  std::optional<Code> code;  // of a failure that is not the kernel's answer to a step
  bool undone = false;       // a failed bind: what it had moved is back where it came from
};

// Carries out `job`: nothing where a guest has the group open (kHeld), else step by step, each
// journalled and synced before it is done. A bind that fails is planned back from what the kernel
// shows then. `at_work` is called before each step, and before each of the way back (with the
// number of the step that failed). May block in the kernel for ever.
Execution Execute(const Job& job, const Tree& tree, const Journal& journal,
                  absl::Duration node_timeout, const std::function<void(size_t)>& at_work);

}  // namespace vfio_agent
