// An AgentStatus as the message that goes over the status socket, and back.
#pragma once

#include "deviceplugin/status/agent_status.h"
#include "proto/status.pb.h"

namespace vfio_agent {

status::v1::AgentStatus ToMessage(const AgentStatus& value);
AgentStatus FromMessage(const status::v1::AgentStatus& message);

}  // namespace vfio_agent
