// What a running agent holds, as Prometheus' text format has them. Pure.
#pragma once

#include <string>

#include "deviceplugin/agent_status.h"

namespace vfio_agent {

std::string StatusToMetrics(const AgentStatus& status);

}  // namespace vfio_agent
