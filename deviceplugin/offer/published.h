// Published: the newest offer of one resource, handed from the loop to the servers' threads.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "deviceplugin/grpc/mutex.h"
#include "deviceplugin/offer/indexed_offer.h"

namespace vfio_agent {

class Published {
 public:
  using Listener = std::function<void()>;

  // Replaces the offer. Where the kubelet would see a difference, calls every listener, on the
  // caller's thread, without the lock.
  void Set(Offer offer) ABSL_LOCKS_EXCLUDED(mutex_);

  // Never null. The offer stays valid for as long as the caller keeps the pointer.
  std::shared_ptr<const IndexedOffer> Get() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Listeners must be quick, and may be called once more after Remove() has returned.
  int Add(Listener listener) ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(int token) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const IndexedOffer> offer_ ABSL_GUARDED_BY(mutex_) =
      std::make_shared<const IndexedOffer>();
  std::map<int, Listener> listeners_ ABSL_GUARDED_BY(mutex_);
  int next_token_ ABSL_GUARDED_BY(mutex_) = 1;
};

}  // namespace vfio_agent
