#include "agent/snapshot/frames.h"

#include <array>
#include <cstdint>
#include <cstring>

#include "sysfs/status.h"

namespace vfio_agent {
namespace {

struct Head {
  int32_t type = 0;
  int32_t kind = 0;
  int32_t code = 0;
  int32_t error = 0;
  uint32_t path_bytes = 0;
  uint32_t text_bytes = 0;
  uint32_t message_bytes = 0;
};

}  // namespace

std::string FrameToText(const Frame& frame) {
  const Reading& reading = frame.reading;
  const std::string message = Message(reading.status);
  const Head head = {.type = static_cast<int32_t>(frame.type),
                     .kind = static_cast<int32_t>(reading.kind),
                     .code = static_cast<int32_t>(reading.status.code()),
                     .error = ErrnoOf(reading.status),
                     .path_bytes = static_cast<uint32_t>(reading.path.size()),
                     .text_bytes = static_cast<uint32_t>(reading.text.size()),
                     .message_bytes = static_cast<uint32_t>(message.size())};
  std::string text(sizeof head, '\0');
  std::memcpy(text.data(), &head, sizeof head);
  return text + reading.path + reading.text + message;
}

// From our own child, so it has the right shape or is cut short.
std::optional<Frame> TakeFrame(std::string& buffer, size_t& at) {
  Head head;
  const std::string_view left = std::string_view(buffer).substr(at);
  if (left.size() < sizeof head) return std::nullopt;
  std::memcpy(&head, left.data(), sizeof head);
  const size_t size = sizeof head + size_t{head.path_bytes} + head.text_bytes + head.message_bytes;
  if (left.size() < size) return std::nullopt;
  Frame frame{.type = static_cast<Frame::Type>(head.type)};
  Reading& reading = frame.reading;
  reading.kind = static_cast<ReadKind>(head.kind);
  reading.path = left.substr(sizeof head, head.path_bytes);
  reading.text = left.substr(sizeof head + head.path_bytes, head.text_bytes);
  if (head.code != 0) {
    const std::string message(left.substr(size - head.message_bytes, head.message_bytes));
    reading.status = absl::Status(static_cast<absl::StatusCode>(head.code), message);
  }
  if (head.error != 0) {
    reading.status.SetPayload(kErrnoPayload, absl::Cord(std::to_string(head.error)));
  }
  at += size;
  return frame;
}

}  // namespace vfio_agent
