// GroupLock: one process at a time writes to a group, also one of an agent that has ended.
#pragma once

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "sysfs/fd.h"

namespace vfio_agent {

// Locks <state_dir>/locks/group-N. Unavailable while another process has it. The lock lasts until
// the last copy of the descriptor is closed, so a forked child that keeps it has it.
absl::StatusOr<Fd> LockGroup(const std::string& state_dir, int group);

// When the lock was taken last, by the wall clock; the infinite past where it never was.
absl::Time GroupLocked(const std::string& state_dir, int group);

// True while some process is at work on the group. Takes no lock.
bool IsGroupLocked(const std::string& state_dir, int group);
// All of those.
std::set<int> LockedGroups(const std::string& state_dir);

}  // namespace vfio_agent
