// WatchStream: one ListAndWatch call.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/async_stream.h>

#include <functional>
#include <memory>

#include "deviceplugin/grpc/completion.h"
#include "deviceplugin/grpc/stream_turn.h"
#include "deviceplugin/offer/published.h"
#include "proto/deviceplugin_v1beta1.grpc.pb.h"

namespace vfio_agent {

// It owns itself from Await() until the call is over; whoever calls it when the stream ends holds a
// second reference, so no call ever reaches a dead object.
class WatchStream : public std::enable_shared_from_this<WatchStream> {
 public:
  // Both are called on the thread that serves the queue.
  struct Observer {
    std::function<void(const std::shared_ptr<WatchStream>&)> opened;  // the list is on its way
    std::function<void()> closed;
  };

  // Waits for the next call and sends it the list at once. All that is named outlives the server.
  static void Await(v1beta1::DevicePlugin::AsyncService& rpc, QueueLease queue,
                    Published& published, Observer observer);

  WatchStream(QueueLease queue, Published& published, Observer observer);

  // Ends the stream from our side. Thread-safe.
  void End();

 private:
  void Opened(bool ok);
  void Written(bool ok);
  void OneOver();
  void Changed();
  void Take(StreamTurn::Next next);

  const QueueLease queue_;  // ends last
  Published& published_;
  const Observer observer_;
  std::shared_ptr<WatchStream> self_;
  int token_ = 0;
  int awaited_ = 2;  // of cancelled_ and finished_: the call is over when both were told
  grpc::ServerContext context_;
  v1beta1::Empty request_;
  grpc::ServerAsyncWriter<v1beta1::ListAndWatchResponse> writer_{&context_};
  Completion opened_{[this](bool ok) { Opened(ok); }};
  Completion written_{[this](bool ok) { Written(ok); }};
  // That the call has ended, for whatever reason. gRPC tells it of every call that was opened.
  Completion cancelled_{[this](bool) {
    End();
    OneOver();
  }};
  Completion finished_{[this](bool) { OneOver(); }};
  StreamTurn turn_;
};

}  // namespace vfio_agent
