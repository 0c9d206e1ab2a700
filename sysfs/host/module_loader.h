// Loading a kernel module with its dependencies. The only user of libkmod.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace vfio_agent {

// Loads `module` ("vfio-pci") as modprobe would, options and blacklist honoured. OK when it is
// loaded already or built in. NotFound: no such module below /lib/modules; PermissionDenied: no
// CAP_SYS_MODULE; FailedPrecondition: blacklisted. Call it in a child process: it may block.
absl::Status LoadKernelModule(const std::string& module);

}  // namespace vfio_agent
