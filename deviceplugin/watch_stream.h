// WatchStream: one open ListAndWatch call.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "deviceplugin/mutex.h"
#include "deviceplugin/published.h"
#include "proto/deviceplugin_v1beta1.pb.h"

namespace vfio_agent {

// It owns itself from Start() to OnDone(); whoever calls it when the stream ends holds a second
// reference, so no call ever reaches a dead object. At most one write is in flight; a change
// meanwhile sets `dirty_`, so the kubelet gets the newest list and never a queue of old ones.
class WatchStream final : public grpc::ServerWriteReactor<v1beta1::ListAndWatchResponse> {
 public:
  // Sends the list at once. `on_done` is called when the stream is over, on one of gRPC's threads.
  static std::shared_ptr<WatchStream> Start(Published& published, std::function<void()> on_done);

  WatchStream(Published& published, std::function<void()> on_done);

  // Ends the stream from our side. Thread-safe.
  void End();

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  void Changed();
  void Advance();

  Published& published_;
  std::function<void()> on_done_;
  std::shared_ptr<WatchStream> self_;
  int token_ = 0;
  v1beta1::ListAndWatchResponse response_;  // touched only by whoever has set `writing_`
  Mutex mutex_;
  bool dirty_ ABSL_GUARDED_BY(mutex_) = true;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace vfio_agent
