// Moment: one instant on both clocks.
#pragma once

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "sysfs/clock.h"

namespace vfio_agent {

struct Moment {
  absl::Time steady;  // for pauses
  absl::Time wall;    // for what is written
};

inline Moment MomentNow() { return {MonotonicNow(), absl::Now()}; }

}  // namespace vfio_agent
