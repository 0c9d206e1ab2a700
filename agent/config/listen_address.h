// Where HTTP is served, as it is written in the configuration. Pure.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace vfio_agent {

// OK for "", and for "ADDRESS:PORT", "[ADDRESS]:PORT" and ":PORT" (all addresses) with a numeric
// address; port 0 lets the kernel choose.
absl::Status CheckListen(const std::string& listen);

}  // namespace vfio_agent
