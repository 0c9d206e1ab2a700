// Throttle: when the next picture of the node is to be taken.
#pragma once

#include "absl/time/time.h"

namespace vfio_agent {

// A storm of events costs at most one picture in a breath: 50 ms, and on a large node, where a
// picture takes longer than that, as long as the last one took, so half a processor at most.
// Nothing that asks is lost: it has its picture a breath later. A value; the time comes from
// outside.
class Throttle {
 public:
  // The node may have changed. Also while a picture is being taken: that one may have missed it.
  void Ask() { asked_ = true; }
  // True while the last picture is known to be old.
  bool asked() const { return asked_; }

  // Around each picture.
  void Begin(absl::Time now);
  // `taken`: false where it could not be: the next one then waits a second, whatever asks.
  void End(absl::Time now, bool taken = true);

  // When the next picture is due; `resync` after the last one where nothing asks.
  absl::Time Next(absl::Duration resync) const;

 private:
  bool asked_ = true;  // at first there is none
  absl::Time begun_ = absl::InfinitePast();
  absl::Time ended_ = absl::InfinitePast();
  bool failed_ = false;
};

}  // namespace vfio_agent
