#include "deviceplugin/offer/published.h"

#include <utility>

#include "deviceplugin/offer/device_list.h"

namespace vfio_agent {

void Published::Set(Offer offer) {
  const auto next = std::make_shared<const IndexedOffer>(std::move(offer));
  std::shared_ptr<const IndexedOffer> last;
  std::map<int, Listener> listeners;
  {
    const MutexLock lock(mutex_);
    last = std::exchange(offer_, next);
    listeners = listeners_;
  }
  if (SameDeviceList(last->offer(), next->offer())) return;
  for (const auto& entry : listeners) entry.second();
}

std::shared_ptr<const IndexedOffer> Published::Get() const {
  const MutexLock lock(mutex_);
  return offer_;
}

int Published::Add(Listener listener) {
  const MutexLock lock(mutex_);
  const int token = next_token_++;
  listeners_.emplace(token, std::move(listener));
  return token;
}

void Published::Remove(int token) {
  const MutexLock lock(mutex_);
  listeners_.erase(token);
}

}  // namespace vfio_agent
