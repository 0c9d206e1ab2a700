#include "deviceplugin/grpc/health_watch.h"

#include <grpcpp/server_context.h>
#include <grpcpp/support/async_stream.h>

#include <optional>
#include <utility>

#include "absl/time/clock.h"

namespace vfio_agent {
namespace {

namespace health = grpc::health::v1;

constexpr absl::Duration kEach = absl::Seconds(1);

}  // namespace

// It owns itself from its making until the call is over. At most one write is in flight; a change
// meanwhile is found when that is done.
class HealthWatch::Stream {
 public:
  Stream(HealthWatch& watch, QueueLease queue) : watch_(watch), queue_(std::move(queue)) {
    context_.AsyncNotifyWhenDone(&cancelled_);
    watch_.rpc_.RequestWatch(&context_, &request_, &writer_, queue_.get(), queue_.get(), &called_);
  }

  void Update() {
    if (writing_ || finishing_) return;
    if (closing_) {
      finishing_ = true;
      writer_.Finish(grpc::Status::OK, &finished_);
      return;
    }
    const State state = watch_.ask_(request_.service());
    if (told_ == state) return;
    told_ = state;
    writing_ = true;
    health::HealthCheckResponse response;
    response.set_status(state);
    writer_.Write(response, &written_);
  }

 private:
  void Called(bool ok) {
    if (!ok) {
      delete this;  // the server shuts down, and nothing more will be told
      return;
    }
    new Stream(watch_, queue_);
    watch_.open_.insert(this);
    Update();
  }

  void Written(bool ok) {
    writing_ = false;
    closing_ = closing_ || !ok;
    Update();
  }

  void Cancelled() {
    closing_ = true;
    Update();
    OneOver();
  }

  // The call is over when both its end and our Finish() were told.
  void OneOver() {
    if (--awaited_ > 0) return;
    watch_.open_.erase(this);
    delete this;
  }

  HealthWatch& watch_;
  const QueueLease queue_;  // ends last
  grpc::ServerContext context_;
  health::HealthCheckRequest request_;
  grpc::ServerAsyncWriter<health::HealthCheckResponse> writer_{&context_};
  int awaited_ = 2;
  std::optional<State> told_;
  bool writing_ = false;
  bool closing_ = false;
  bool finishing_ = false;
  Completion called_{[this](bool ok) { Called(ok); }};
  Completion written_{[this](bool ok) { Written(ok); }};
  Completion cancelled_{[this](bool) { Cancelled(); }};
  Completion finished_{[this](bool) { OneOver(); }};
};

void HealthWatch::Await(const QueueLease& queue) { new Stream(*this, queue); }

absl::Time HealthWatch::Tick() {
  if (open_.empty()) return absl::InfiniteFuture();
  const absl::Time now = absl::Now();
  if (now < next_look_ && next_look_ <= now + kEach) return next_look_;
  next_look_ = now + kEach;
  for (Stream* stream : open_) stream->Update();
  return next_look_;
}

}  // namespace vfio_agent
