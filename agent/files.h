// Small helpers for the agent's own files.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace vfio_agent {

// Makes `path` with the directories above it, for root only. OK where it is there already.
absl::Status MakeDirectories(const std::string& path);

}  // namespace vfio_agent
