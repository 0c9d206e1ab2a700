// ReplayRoot: a snapshot as the root of any command.
#pragma once

#include <functional>

#include "agent/session.h"

namespace vfio_agent {

// Calls `run` with `invocation` and returns its exit code. Where the root is a file it is unpacked
// first, to a directory for this user alone that goes away at the end, however `run` ends: it runs
// in a child, to which signals are handed on. Where the root is a snapshot, the configuration, the
// journal and the model names are the snapshot's, but for what is set by flag (of the configuration
// also by environment). PrintError()s and gives kExitFailed where it cannot be unpacked.
int WithRoot(Invocation& invocation, const std::function<int()>& run);

}  // namespace vfio_agent
