// Which of the directories that the settings name are this machine's, and not a copy's.
#pragma once

#include "agent/session.h"

namespace vfio_agent {

// The directory of the setting `key`: this machine's, unless a copy is looked at and nobody has
// named it; then it is that of the copy.
bool IsLive(const Session& session, const char* key);

// A tree of plain files, such as an unpacked snapshot: what is written there stays as it is
// written. A simulated kernel comes by FUSE.
bool IsCopy(const Tree& tree);

// True where a daemon can be asked in stateDir.
bool IsStateDirLive(const Session& session);

}  // namespace vfio_agent
