// WriteNewFile: a file that is there whole or not at all.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace vfio_agent {

// Writes `bytes` to a fresh file beside `path`, readable by its owner alone, and renames it.
// AlreadyExists where `path` is there and `replace` is false.
absl::Status WriteNewFile(const std::string& path, const std::string& bytes, bool replace);

}  // namespace vfio_agent
