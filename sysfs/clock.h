// The clock of all deadlines: it never steps, unlike the wall clock of a node that has just booted.
#pragma once

#include <ctime>

#include "absl/time/time.h"

namespace vfio_agent {

// Time since boot as an absl::Time; only differences mean something. For any thread.
inline absl::Time MonotonicNow() {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return absl::TimeFromTimespec(now);
}

}  // namespace vfio_agent
