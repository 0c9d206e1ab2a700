// ReplayRoot: a snapshot as the root of any command.
#pragma once

#include <functional>
#include <optional>

#include "agent/session.h"

namespace vfio_agent {

// Calls `run` with `invocation` and returns its exit code. Where the root is a snapshot, packed (a
// file) or unpacked, `run` works on copies (CopyOwnFiles) of its configuration, journal and model
// names, but for what is set by flag (of the configuration also by environment). They, and what was
// unpacked, are in a directory for this user alone that goes away at the end, however `run` ends:
// it runs in a child, to which signals are handed on. PrintError()s where that cannot be done, and
// gives kExitFailed, or kExitUsage for the snapshot's configuration.
int WithRoot(Invocation& invocation, const std::function<int()>& run);

struct WorkedOn {
  bool own_state_dir = false;  // a copy's: nobody has named another one
};
// The snapshot that this process works on, which WithRoot() has forked for it; nullopt for any
// other process.
std::optional<WorkedOn> WorkedSnapshot();

}  // namespace vfio_agent
