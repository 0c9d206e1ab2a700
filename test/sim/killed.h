// SigkillPending: whether a thread is being killed.
#pragma once

#include <sys/types.h>

namespace vfio_agent::sim {

// FUSE reports every signal as "interrupted", but a write to sysfs goes on after one that the
// writer handles: only a kill may end it. True also for a thread that cannot be seen any more.
bool SigkillPending(pid_t thread);

}  // namespace vfio_agent::sim
