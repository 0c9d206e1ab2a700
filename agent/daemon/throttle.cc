#include "agent/daemon/throttle.h"

#include <algorithm>

namespace vfio_agent {
namespace {

constexpr absl::Duration kBreath = absl::Milliseconds(50);
constexpr absl::Duration kAfterFailure = absl::Seconds(1);

}  // namespace

void Throttle::Begin(absl::Time now) {
  begun_ = now;
  asked_ = false;
}

void Throttle::End(absl::Time now, bool taken) {
  ended_ = now;
  failed_ = !taken;
}

absl::Time Throttle::Next(absl::Duration resync) const {
  if (ended_ == absl::InfinitePast()) return ended_;
  if (!asked_) return ended_ + resync;
  const absl::Duration breath = failed_ ? kAfterFailure : kBreath;
  return ended_ + std::min(resync, std::max(breath, ended_ - begun_));
}

}  // namespace vfio_agent
