// The question of the kubelet's probe: whether the daemon lives.
#pragma once

#include "agent/session.h"

namespace vfio_agent {

int HealthCommand(const Invocation& invocation);

}  // namespace vfio_agent
