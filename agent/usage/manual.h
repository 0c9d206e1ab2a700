// The man page, from the command table. Pure.
#pragma once

#include <string>

namespace vfio_agent {

// vfio-agent(8) as roff, for man.
std::string ManualPage();

}  // namespace vfio_agent
