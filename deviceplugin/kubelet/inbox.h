// Inbox: what the servers' threads have to tell the loop.
#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "deviceplugin/grpc/listener.h"
#include "deviceplugin/grpc/mutex.h"
#include "deviceplugin/kubelet/service.h"

namespace vfio_agent {

struct Signal {
  std::string resource;
  int incarnation = 0;  // of the server that it is about
  // A Status: what the kubelet made of the registration.
  std::variant<ServiceEvent, absl::Status, RefusedPeer> what;
};

class Inbox {
 public:
  // `wake` is called after each Put() into an empty inbox, until Close() has returned.
  explicit Inbox(std::function<void()> wake) : wake_(std::move(wake)) {}

  void Put(Signal signal) ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(mutex_);
    if (!wake_) return;
    signals_.push_back(std::move(signal));
    // Whoever has been woken takes all. With the lock held, so that nobody is woken whose loop is
    // gone; it only writes an eventfd.
    if (signals_.size() == 1) wake_();
  }

  std::vector<Signal> TakeAll() ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(mutex_);
    return std::exchange(signals_, {});
  }

  void Close() ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(mutex_);
    wake_ = nullptr;
  }

 private:
  Mutex mutex_;
  std::function<void()> wake_ ABSL_GUARDED_BY(mutex_);
  std::vector<Signal> signals_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace vfio_agent
