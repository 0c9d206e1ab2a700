// Scratch: one directory for each fuzz process, emptied before each input.
#pragma once

#include <string>

namespace vfio_agent {

// An empty directory "root" below TMPDIR; what the last call's reader left there is gone. The
// directory around it goes away when the process ends, but for a crash: run.sh gives each run a
// TMPDIR of its own.
std::string FreshRoot();

}  // namespace vfio_agent
