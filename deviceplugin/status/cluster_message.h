// The parts of AgentStatus that are about the cluster, as messages of status.proto.
#pragma once

#include "deviceplugin/status/agent_status.h"
#include "proto/status.pb.h"

namespace vfio_agent {

void PutMode(const ModeStatus& mode, status::v1::AgentStatus& message);
ModeStatus TakeMode(const status::v1::Mode& message);

// Nothing of an agent that goes without an API server.
void PutApi(const ApiStatus& api, status::v1::AgentStatus& message);
ApiStatus TakeApi(const status::v1::Api& message);

}  // namespace vfio_agent
