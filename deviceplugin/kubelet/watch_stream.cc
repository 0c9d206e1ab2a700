#include "deviceplugin/kubelet/watch_stream.h"

#include <utility>

#include "deviceplugin/offer/device_list.h"

namespace vfio_agent {

void WatchStream::Await(v1beta1::DevicePlugin::AsyncService& rpc, QueueLease queue,
                        Published& published, Observer observer) {
  grpc::ServerCompletionQueue* const tells = queue.get();
  const auto stream =
      std::make_shared<WatchStream>(std::move(queue), published, std::move(observer));
  stream->self_ = stream;
  stream->context_.AsyncNotifyWhenDone(&stream->cancelled_);
  rpc.RequestListAndWatch(&stream->context_, &stream->request_, &stream->writer_, tells, tells,
                          &stream->opened_);
}

WatchStream::WatchStream(QueueLease queue, Published& published, Observer observer)
    : queue_(std::move(queue)), published_(published), observer_(std::move(observer)) {}

void WatchStream::Opened(bool ok) {
  if (!ok) {
    self_.reset();  // deletes *this: the server shuts down, and nothing more will be told
    return;
  }
  token_ = published_.Add([weak = weak_from_this()] {
    if (const auto alive = weak.lock()) alive->Changed();
  });
  Changed();
  // Only now, so that a stream which its observer ends at once has sent its list all the same.
  observer_.opened(self_);
}

void WatchStream::Written(bool ok) { Take(turn_.Written(ok)); }

void WatchStream::OneOver() {
  if (--awaited_ > 0) return;
  published_.Remove(token_);
  const auto last = std::move(self_);  // may delete *this on leaving
  observer_.closed();
}

void WatchStream::End() { Take(turn_.Close()); }

void WatchStream::Changed() { Take(turn_.Changed()); }

void WatchStream::Take(StreamTurn::Next next) {
  if (next == StreamTurn::Next::kWrite) {
    writer_.Write(MakeDeviceList(published_.Get()->offer()), &written_);
  }
  if (next == StreamTurn::Next::kFinish) writer_.Finish(grpc::Status::OK, &finished_);
}

}  // namespace vfio_agent
