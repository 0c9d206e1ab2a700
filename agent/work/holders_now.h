// Who has the devices of a failed job open.
#pragma once

#include <string>

#include "agent/work/jobs.h"
#include "agent/work/use_reader.h"

namespace vfio_agent {

class Tree;

// "0000:17:00.0 is open in pid 4711 (python3)"; empty where nobody is seen, and for failures that
// no holder can be the cause of. Costs a walk over all processes in a child, at most a second.
std::string HoldersNow(const Tree& tree, const JobEvent& failed, UseReader& reader);

}  // namespace vfio_agent
