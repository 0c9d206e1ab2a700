#include "deviceplugin/watch_stream.h"

#include <utility>

#include "deviceplugin/device_list.h"

namespace vfio_agent {

std::shared_ptr<WatchStream> WatchStream::Start(Published& published,
                                                std::function<void()> on_done) {
  auto stream = std::make_shared<WatchStream>(published, std::move(on_done));
  stream->self_ = stream;
  stream->token_ = published.Add([weak = std::weak_ptr<WatchStream>(stream)] {
    if (const auto alive = weak.lock()) alive->Changed();
  });
  stream->Advance();
  return stream;
}

WatchStream::WatchStream(Published& published, std::function<void()> on_done)
    : published_(published), on_done_(std::move(on_done)) {}

void WatchStream::OnWriteDone(bool ok) {
  // The list of a large node is worth some memory, and the next one may be days away.
  response_ = v1beta1::ListAndWatchResponse();
  {
    const MutexLock lock(mutex_);
    writing_ = false;
    if (!ok) closing_ = true;
  }
  Advance();
}

void WatchStream::OnCancel() { End(); }

void WatchStream::OnDone() {
  published_.Remove(token_);
  const auto last = std::move(self_);  // may delete *this on leaving
  on_done_();
}

void WatchStream::End() {
  {
    const MutexLock lock(mutex_);
    closing_ = true;
  }
  Advance();
}

void WatchStream::Changed() {
  {
    const MutexLock lock(mutex_);
    dirty_ = true;
  }
  Advance();
}

// StartWrite() and Finish() may call back on this thread, so neither is called with the lock held.
void WatchStream::Advance() {
  enum { kNothing, kWrite, kFinish } next = kNothing;
  {
    const MutexLock lock(mutex_);
    if (writing_ || finished_) return;
    if (closing_) {
      finished_ = true;
      next = kFinish;
    } else if (dirty_) {
      dirty_ = false;
      writing_ = true;
      next = kWrite;
    }
  }
  if (next == kWrite) {
    response_ = MakeDeviceList(published_.Get()->offer());
    StartWrite(&response_);
  }
  if (next == kFinish) Finish(grpc::Status::OK);
}

}  // namespace vfio_agent
