// StreamTurn: whose turn it is on a stream that always carries the newest state.
#pragma once

#include "absl/base/thread_annotations.h"
#include "deviceplugin/grpc/mutex.h"

namespace vfio_agent {

// At most one write is in flight; a change meanwhile is remembered, so that the reader gets the
// newest state and never a queue of old ones. Whoever is told kWrite or kFinish has the writer to
// itself until Written(); nothing is told after kFinish. Thread-safe; gRPC is to be called after
// these have returned, so never with a lock held.
class StreamTurn {
 public:
  enum class Next { kNothing, kWrite, kFinish };

  // There is something new. A stream begins with something new to write: Changed() opens it.
  Next Changed() {
    const MutexLock lock(mutex_);
    dirty_ = true;
    return Take();
  }
  // We want it ended.
  Next Close() {
    const MutexLock lock(mutex_);
    closing_ = true;
    return Take();
  }
  // A write is over; after a failed one the stream only ends.
  Next Written(bool ok) {
    const MutexLock lock(mutex_);
    writing_ = false;
    closing_ = closing_ || !ok;
    return Take();
  }

 private:
  Next Take() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (writing_ || finishing_) return Next::kNothing;
    if (closing_) {
      finishing_ = true;
      return Next::kFinish;
    }
    if (!dirty_) return Next::kNothing;
    dirty_ = false;
    writing_ = true;
    return Next::kWrite;
  }

  Mutex mutex_;
  bool dirty_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finishing_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace vfio_agent
