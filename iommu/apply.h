// Applying a plan: the only code that turns actions into writes.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "iommu/code.h"
#include "iommu/plan/action.h"

namespace vfio_agent {

class Tree;
class Writer;

// Called before each action; `step` counts from 0. An error stops there: what cannot be journalled
// is not done.
using OnStep = std::function<absl::Status(size_t step)>;

struct Outcome {
  size_t done = 0;       // actions carried out and checked, before the first that failed
  absl::Status status;   // OK, or why actions[done] failed
  bool refused = false;  // `status` is OnStep's: the kernel was not asked
};

// Carries out `actions` in order and stops at the first failure, but for a mediated device that
// cannot be made while its like is still going: the others are tried. After each Probe the driver
// link is read back: the kernel answers "success" to drivers_probe even when no driver took the
// device (then FailedPrecondition). AwaitNode waits at most `node_timeout` (DeadlineExceeded).
// Undoing is the caller's choice: take new facts, plan again. May block in the kernel for ever: run
// it in a child process. Never reads driver_override, which blocks while an unbind does.
Outcome Apply(std::span<const Action> actions, const Tree& tree, Writer& writer,
              absl::Duration node_timeout, const OnStep& on_step);

// The code of a failed action, from the kernel's answer.
Code CodeOfFailure(const Action& action, const absl::Status& status);

}  // namespace vfio_agent
