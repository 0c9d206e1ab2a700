// What this build is: packaging/cmake/Version.cmake writes the body, so that one small file is
// compiled after a commit, and not all of agent/.
#pragma once

#include <string_view>

namespace vfio_agent {

std::string_view AgentVersion();

}  // namespace vfio_agent
