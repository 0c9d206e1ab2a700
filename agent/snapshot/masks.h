// Masks: the one table of what is taken out of a snapshot.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "agent/snapshot/masker.h"

namespace vfio_agent {

struct Mask {
  const char* pattern;  // of fnmatch(3), over the path below the root; '*' goes over '/'
  const char* what;     // for people
  std::string (*apply)(std::string_view text, Masker& masker);
};

// The first row that fits counts; the last one fits everything.
std::span<const Mask> Masks();
const Mask& MaskFor(const std::string& path);

}  // namespace vfio_agent
