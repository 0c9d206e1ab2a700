#include "agent/daemon/loop.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/time/clock.h"
#include "sysfs/clock.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

// Between turns that come one upon another, as when the kubelet asks much: one turn then does what
// many would, and leaves the time to the servers' threads.
constexpr absl::Duration kBetweenTurns = absl::Milliseconds(1);

}  // namespace

absl::Status Loop::Open() {
  wake_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_.valid()) return ErrnoStatus("eventfd");
  Watch(wake_.get(), [this] {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t n = ::read(wake_.get(), &count, sizeof count);
  });
  return absl::OkStatus();
}

void Loop::Watch(int fd, Callback callback) {
  if (fd >= 0) watched_.push_back({.fd = fd, .callback = std::move(callback)});
}

void Loop::Wake() {
  const uint64_t one = 1;
  // It can only fail when the counter is full, and then the loop is awake anyway.
  [[maybe_unused]] const ssize_t n = ::write(wake_.get(), &one, sizeof one);
}

void Loop::WaitOnce(absl::Time deadline) {
  std::vector<pollfd> ready;
  ready.reserve(watched_.size());
  for (const Watched& watched : watched_) ready.push_back({.fd = watched.fd, .events = POLLIN});
  timespec wait = {};
  const absl::Duration left = std::max(deadline - MonotonicNow(), absl::ZeroDuration());
  const bool bounded = deadline != absl::InfiniteFuture();
  if (bounded) wait = absl::ToTimespec(std::min(left, absl::Hours(24)));
  if (::ppoll(ready.data(), ready.size(), bounded ? &wait : nullptr, nullptr) <= 0) return;
  for (size_t i = 0; i < ready.size(); ++i) {
    if (ready[i].revents != 0) watched_[i].callback();
  }
}

void Loop::Run(const std::function<absl::Time()>& deadline, const Callback& turn) {
  stopped_ = false;
  turn();
  while (!stopped_) {
    const absl::Time soonest = MonotonicNow() + kBetweenTurns;
    WaitOnce(deadline());
    if (stopped_) return;
    absl::SleepFor(soonest - MonotonicNow());
    turn();
  }
}

}  // namespace vfio_agent
