#include "agent/throttle.h"

#include <algorithm>

namespace vfio_agent {
namespace {

constexpr absl::Duration kBreath = absl::Milliseconds(50);

}  // namespace

void Throttle::Begin(absl::Time now) {
  begun_ = now;
  asked_ = false;
}

void Throttle::End(absl::Time now) { ended_ = now; }

absl::Time Throttle::Next(absl::Duration resync) const {
  if (ended_ == absl::InfinitePast()) return ended_;
  if (!asked_) return ended_ + resync;
  return ended_ + std::min(resync, std::max(kBreath, ended_ - begun_));
}

}  // namespace vfio_agent
