#include "test/conformance/list_stream.h"

#include <utility>

namespace vfio_agent::conformance {

ListStream::ListStream(std::shared_ptr<FakeKubelet::Stub> plugin)
    : plugin_(std::move(plugin)), thread_([this] { Read(); }) {}

ListStream::~ListStream() {
  context_.TryCancel();
  thread_.join();
}

void ListStream::Read() {
  const auto stream = plugin_->ListAndWatch(&context_, v1beta1::Empty());
  v1beta1::ListAndWatchResponse list;
  while (stream->Read(&list)) {
    const std::unique_lock lock(mutex_);
    lists_.push_back(list);
    changed_.notify_all();
  }
  stream->Finish();
  const std::unique_lock lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

bool ListStream::WaitFor(const std::function<bool(const Lists& lists)>& wanted,
                         absl::Duration limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, absl::ToChronoMilliseconds(limit), [&] { return wanted(lists_); });
}

Lists ListStream::lists() const {
  const std::unique_lock lock(mutex_);
  return lists_;
}

bool ListStream::ended() const {
  const std::unique_lock lock(mutex_);
  return ended_;
}

}  // namespace vfio_agent::conformance
