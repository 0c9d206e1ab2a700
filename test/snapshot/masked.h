// What the table of masks makes of a text.
#pragma once

#include <catch2/catch.hpp>
#include <string>

#include "agent/snapshot/mask_text.h"
#include "agent/snapshot/masks.h"

namespace vfio_agent {

// By the table, as a snapshot does it; whatever is masked is masked to itself.
inline std::string Masked(const std::string& path, const std::string& text) {
  Masker first, second;
  std::string once = MaskFor(path).apply(text, first);
  CHECK(MaskFor(path).apply(once, second) == once);
  return once;
}

}  // namespace vfio_agent
