// Whether this process sees the host's files, or a container's.
#pragma once

#include <string>
#include <string_view>

namespace vfio_agent {

class Tree;

// False where process 1 is some container's, or has another root file system than this process. A
// mount namespace of its own alone is no container: services have such. True for a root other than
// "/", which is taken as it is, and where process 1 does not let itself be looked at.
bool SeesHostFiles(const Tree& tree);

// Device and directory of what is mounted on "/", as proc/<pid>/mountinfo has them: "259:2 /";
// empty for none.
std::string ParseRootMount(std::string_view mountinfo);

}  // namespace vfio_agent
