// DumpTree: the simulated tree as plain directories, files and links.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "test/sim/kernel.h"

namespace vfio_agent::sim {

// Below `directory`, which is made. What is written there has no effect any more: it is for
// reading at the speed of a plain file system. Write-only attributes become empty files.
absl::Status DumpTree(Kernel& kernel, const std::string& directory);

}  // namespace vfio_agent::sim
