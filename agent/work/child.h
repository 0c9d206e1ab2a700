// Child: what each forked child process does first.
#pragma once

#include <initializer_list>

namespace vfio_agent {

// In the child: closes what came from the parent but the descriptors in `keep` and the standard
// streams (a stuck child must not keep the plugins' sockets open), leaves its process group (a ^C
// at the terminal must not cut a group's plan in two), and takes the signals' defaults.
void LeaveParent(std::initializer_list<int> keep);

}  // namespace vfio_agent
