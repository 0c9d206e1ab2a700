#include "deviceplugin/dra/dra_health.h"

#include <grpcpp/server_context.h>
#include <grpcpp/support/async_stream.h>

#include <utility>

#include "absl/time/clock.h"
#include "deviceplugin/grpc/stream_turn.h"

namespace vfio_agent {
namespace {

constexpr size_t kLongestMessage = 1024;

struct V1 {
  using Service = v1::DRAResourceHealth::AsyncService;
  using Request = v1::NodeWatchResourcesRequest;
  using Response = v1::NodeWatchResourcesResponse;
  static constexpr auto kHealthy = v1::HEALTHY;
  static constexpr auto kUnhealthy = v1::UNHEALTHY;
};

struct V1Alpha1 {
  using Service = v1alpha1::DRAResourceHealth::AsyncService;
  using Request = v1alpha1::NodeWatchResourcesRequest;
  using Response = v1alpha1::NodeWatchResourcesResponse;
  static constexpr auto kHealthy = v1alpha1::HEALTHY;
  static constexpr auto kUnhealthy = v1alpha1::UNHEALTHY;
};

template <typename Version>
typename Version::Response ToMessage(const HealthList& list) {
  typename Version::Response response;
  for (const DeviceHealthValue& value : list) {
    auto& out = *response.add_devices();
    out.mutable_device()->set_pool_name(value.pool);
    out.mutable_device()->set_device_name(value.device);
    out.set_health(value.healthy ? Version::kHealthy : Version::kUnhealthy);
    out.set_last_updated_time(absl::ToUnixSeconds(absl::Now()));
    out.set_health_check_timeout_seconds(absl::ToInt64Seconds(kHealthTimeout));
    out.set_message(value.message.substr(0, kLongestMessage));
  }
  return response;
}

// An open stream, of whatever version.
class Watch {
 public:
  virtual ~Watch() = default;
  virtual void Changed() = 0;
  virtual void End() = 0;
};

}  // namespace

void PublishedHealth::Set(HealthList list) {
  std::vector<Listener> listeners;
  {
    const MutexLock lock(mutex_);
    if (*list_ == list) return;
    list_ = std::make_shared<const HealthList>(std::move(list));
    for (const auto& entry : listeners_) listeners.push_back(entry.second);
  }
  for (const Listener& listener : listeners) listener();
}

std::shared_ptr<const HealthList> PublishedHealth::Get() const {
  const MutexLock lock(mutex_);
  return list_;
}

int PublishedHealth::Add(Listener listener) {
  const MutexLock lock(mutex_);
  listeners_.emplace(next_token_, std::move(listener));
  return next_token_++;
}

void PublishedHealth::Remove(int token) {
  const MutexLock lock(mutex_);
  listeners_.erase(token);
}

// Those that are open. Opened() and the tick run on the server's thread, End() on the loop's.
class DraHealth::Streams {
 public:
  explicit Streams(PublishedHealth& published) : published_(published) {}

  template <typename Version>
  class Stream;

  template <typename Version>
  void Await(typename Version::Service& rpc, const QueueLease& queue);

  void Add(const std::shared_ptr<Watch>& watch) ABSL_LOCKS_EXCLUDED(mutex_) {
    bool ended = false;
    {
      const MutexLock lock(mutex_);
      ended = ended_;
      std::erase_if(open_, [](const std::weak_ptr<Watch>& old) { return old.expired(); });
      open_.push_back(watch);
    }
    if (ended) watch->End();
  }
  std::vector<std::shared_ptr<Watch>> Open() const ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(mutex_);
    std::vector<std::shared_ptr<Watch>> open;
    for (const auto& weak : open_) {
      if (auto watch = weak.lock()) open.push_back(std::move(watch));
    }
    return open;
  }
  void End() ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      const MutexLock lock(mutex_);
      ended_ = true;
    }
    for (const auto& watch : Open()) watch->End();
  }
  PublishedHealth& published() { return published_; }

 private:
  PublishedHealth& published_;
  mutable Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::weak_ptr<Watch>> open_ ABSL_GUARDED_BY(mutex_);
};

// As WatchStream: it owns itself until the call is over.
template <typename Version>
class DraHealth::Streams::Stream final
    : public Watch,
      public std::enable_shared_from_this<DraHealth::Streams::Stream<Version>> {
 public:
  Stream(Streams& streams, typename Version::Service& rpc, QueueLease queue)
      : streams_(streams), rpc_(rpc), queue_(std::move(queue)) {}

  void Await() {
    self_ = this->shared_from_this();
    context_.AsyncNotifyWhenDone(&cancelled_);
    rpc_.RequestNodeWatchResources(&context_, &request_, &writer_, queue_.get(), queue_.get(),
                                   &opened_);
  }

  void Changed() override { Take(turn_.Changed()); }
  void End() override { Take(turn_.Close()); }

 private:
  void Opened(bool ok) {
    if (!ok) {
      self_.reset();  // deletes *this: the server shuts down
      return;
    }
    std::make_shared<Stream>(streams_, rpc_, queue_)->Await();
    token_ = streams_.published().Add([weak = this->weak_from_this()] {
      if (const auto alive = weak.lock()) alive->Changed();
    });
    Changed();
    streams_.Add(self_);
  }

  void Written(bool ok) { Take(turn_.Written(ok)); }

  // The call is over when both its end and our Finish() were told.
  void OneOver() {
    if (--awaited_ > 0) return;
    streams_.published().Remove(token_);
    const auto last = std::move(self_);  // may delete *this on leaving
  }

  void Take(StreamTurn::Next next) {
    if (next == StreamTurn::Next::kWrite) {
      writer_.Write(ToMessage<Version>(*streams_.published().Get()), &written_);
    }
    if (next == StreamTurn::Next::kFinish) writer_.Finish(grpc::Status::OK, &finished_);
  }

  Streams& streams_;
  typename Version::Service& rpc_;
  const QueueLease queue_;  // ends last
  std::shared_ptr<Stream> self_;
  int token_ = 0;
  int awaited_ = 2;
  grpc::ServerContext context_;
  typename Version::Request request_;
  grpc::ServerAsyncWriter<typename Version::Response> writer_{&context_};
  Completion opened_{[this](bool ok) { Opened(ok); }};
  Completion written_{[this](bool ok) { Written(ok); }};
  Completion cancelled_{[this](bool) {
    End();
    OneOver();
  }};
  Completion finished_{[this](bool) { OneOver(); }};
  StreamTurn turn_;
};

template <typename Version>
void DraHealth::Streams::Await(typename Version::Service& rpc, const QueueLease& queue) {
  std::make_shared<Stream<Version>>(*this, rpc, queue)->Await();
}

DraHealth::DraHealth(PublishedHealth& published, absl::Duration again)
    : published_(published), again_(again), streams_(std::make_unique<Streams>(published_)) {}

DraHealth::~DraHealth() = default;

void DraHealth::Serve(const QueueLease& queue) {
  streams_->Await<V1>(v1_, queue);
  streams_->Await<V1Alpha1>(v1alpha1_, queue);
}

void DraHealth::EndStreams() { streams_->End(); }

absl::Time DraHealth::Tick() {
  const auto open = streams_->Open();
  if (open.empty()) return due_ = absl::InfiniteFuture();
  const absl::Time now = absl::Now();
  if (due_ == absl::InfiniteFuture()) return due_ = now + again_;
  // A clock that was set back must not keep it waiting.
  if (now < due_ && due_ <= now + again_) return due_;
  for (const auto& watch : open) watch->Changed();
  return due_ = now + again_;
}

}  // namespace vfio_agent
