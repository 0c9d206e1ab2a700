// The name of this node in the cluster.
#pragma once

#include <string>

namespace vfio_agent {

// NODE_NAME of the environment, which a manifest sets from spec.nodeName, else the host's own name.
std::string NodeName();

}  // namespace vfio_agent
