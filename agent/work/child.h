// Child: what each forked child process does first.
#pragma once

#include <initializer_list>

#include "agent/privileges/rights.h"

namespace vfio_agent {

// In the child: closes what came from the parent but the descriptors in `keep` and the standard
// streams (a stuck child must not keep the plugins' sockets open), leaves its process group (a ^C
// at the terminal must not cut a group's plan in two), takes the signals' defaults, and drops all
// capabilities but those that it `uses`, as far as the parent has them.
void LeaveParent(std::initializer_list<int> keep, Rights uses);

// Drops all capabilities but those that it `uses` from here on. Where the kernel refuses, the child
// has what it had, no more; what it lacks shows in its answer.
void UseOnly(Rights uses);

}  // namespace vfio_agent
