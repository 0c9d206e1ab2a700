// Serve: the Kernel's tree as a mounted file system.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "test/sim/kernel.h"

namespace vfio_agent::sim {

struct ServeOptions {
  std::string mount_point;
  bool exit_on_eof = false;               // standard input closed: its owner is gone
  std::function<void()> mounted = [] {};  // called once the tree can be read
};

// Mounts, serves, and returns after unmounting: on SIGTERM, SIGINT, ".control quit" or, if asked
// for, end of input. Blocked readers and writers then get EINTR. Call it before the process has
// other threads: it blocks those signals.
//
// Besides the kernel's tree the root has two files: ".control" takes commands and ".log" tells
// all writes so far.
absl::Status Serve(Kernel& kernel, const ServeOptions& options);

}  // namespace vfio_agent::sim
