#include "deviceplugin/grpc/timer_engine.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/status/status.h"

namespace vfio_agent {

namespace engine = grpc_event_engine::experimental;

// std::mutex and no annotations: a condition variable waits with it.
class TimerEngine::Queue : public std::enable_shared_from_this<Queue> {
 public:
  intptr_t Add(Duration when, Work work) {
    // Far enough for anybody, and no overflow.
    constexpr Duration kMost = std::chrono::hours(24 * 365);
    const Clock::time_point due = Clock::now() + std::clamp(when, Duration::zero(), kMost);
    const std::scoped_lock lock(mutex_);
    if (!thread_.joinable()) thread_ = std::thread([self = shared_from_this()] { self->Work(); });
    const intptr_t id = next_id_++;
    const auto added = pending_.emplace(due, Entry{id, std::move(work)});
    if (added == pending_.begin()) changed_.notify_one();
    return id;
  }

  bool Remove(intptr_t id) {
    const std::scoped_lock lock(mutex_);
    return std::erase_if(pending_, [id](const auto& entry) { return entry.second.id == id; }) > 0;
  }

  bool IsOwnThread() {
    const std::scoped_lock lock(mutex_);
    return thread_.get_id() == std::this_thread::get_id();
  }

  void Stop() {
    {
      const std::scoped_lock lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_one();
    if (!thread_.joinable()) return;
    if (IsOwnThread()) {
      thread_.detach();  // it ends when it returns from here
    } else {
      thread_.join();
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    intptr_t id = 0;
    TimerEngine::Work work;
  };

  void Work() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      if (pending_.empty()) {
        changed_.wait(lock);
      } else if (const Clock::time_point due = pending_.begin()->first; due > Clock::now()) {
        changed_.wait_until(lock, due);
      } else {
        auto entry = pending_.extract(pending_.begin());
        lock.unlock();
        entry.mapped().work();
        entry = {};  // what the work holds ends without the lock
        lock.lock();
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<Clock::time_point, Entry> pending_;
  intptr_t next_id_ = 1;
  bool stopping_ = false;
  std::thread thread_;
};

TimerEngine::TimerEngine() : queue_(std::make_shared<Queue>()) {}

TimerEngine::~TimerEngine() { queue_->Stop(); }

void TimerEngine::Run(Closure* closure) { RunAfter(Duration::zero(), closure); }

void TimerEngine::Run(Work work) { RunAfter(Duration::zero(), std::move(work)); }

engine::EventEngine::TaskHandle TimerEngine::RunAfter(Duration when, Closure* closure) {
  return RunAfter(when, [closure] { closure->Run(); });
}

engine::EventEngine::TaskHandle TimerEngine::RunAfter(Duration when, Work work) {
  return {{queue_->Add(when, std::move(work)), 0}};
}

bool TimerEngine::Cancel(TaskHandle handle) { return queue_->Remove(handle.keys[0]); }

bool TimerEngine::IsWorkerThread() { return queue_->IsOwnThread(); }

absl::StatusOr<std::unique_ptr<engine::EventEngine::Listener>> TimerEngine::CreateListener(
    Listener::AcceptCallback, absl::AnyInvocable<void(absl::Status)>, const engine::EndpointConfig&,
    std::unique_ptr<engine::MemoryAllocatorFactory>) {
  return absl::UnimplementedError("this engine does not listen");
}

engine::EventEngine::ConnectionHandle TimerEngine::Connect(OnConnectCallback on_connect,
                                                           const ResolvedAddress&,
                                                           const engine::EndpointConfig&,
                                                           engine::MemoryAllocator, Duration) {
  Run([on_connect = std::move(on_connect)]() mutable {
    on_connect(absl::UnimplementedError("this engine does not connect"));
  });
  return {{-1, 0}};
}

bool TimerEngine::CancelConnect(ConnectionHandle) { return false; }

std::unique_ptr<engine::EventEngine::DNSResolver> TimerEngine::GetDNSResolver(
    const DNSResolver::ResolverOptions&) {
  return nullptr;
}

}  // namespace vfio_agent
