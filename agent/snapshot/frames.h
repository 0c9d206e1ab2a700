// Frames: how a child that reads tells its parent what it reads, and what it has read.
#pragma once

#include <optional>
#include <string>

#include "sysfs/watch.h"

namespace vfio_agent {

struct Frame {
  enum class Type { kBegin, kEnd, kDone };
  Type type = Type::kDone;
  Reading reading;  // of kBegin only the question
};

std::string FrameToText(const Frame& frame);

// Takes the first frame off `buffer`; nullopt where it is not there whole.
std::optional<Frame> TakeFrame(std::string& buffer, size_t& at);

}  // namespace vfio_agent
