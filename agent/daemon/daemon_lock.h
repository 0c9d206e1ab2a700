// DaemonLock: one daemon at a time works with one state directory, which is one node.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "sysfs/fd.h"

namespace vfio_agent {

class DaemonLock {
 public:
  explicit DaemonLock(std::string state_dir) : state_dir_(std::move(state_dir)) {}

  // Takes <state_dir>/agent.lock and writes this process's number into it. Unavailable while
  // another one has it; holder() is then that one's number. Held until this object goes or the
  // process ends, however it ends: the kernel drops it. Held also where just the number could not
  // be written (a full disk), which is an error all the same.
  absl::Status TryTake();

  // 0 where it cannot be read.
  pid_t holder() const { return holder_; }

  // Whether somebody, this process too, has the lock of `state_dir`: the number that it has written
  // (by its own count: each container may have its process 1), 0 where that cannot be read. nullopt
  // where nobody has it or the file cannot be asked. Takes no lock.
  static std::optional<pid_t> Running(const std::string& state_dir);

 private:
  std::string state_dir_;
  Fd lock_;
  pid_t holder_ = 0;
};

}  // namespace vfio_agent
