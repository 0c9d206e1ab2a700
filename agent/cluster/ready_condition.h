// The Node's condition PassthroughReady: whether this node gives devices to guests, and why not.
// Pure.
#pragma once

#include <string>

#include "agent/cluster/cluster.h"
#include "deviceplugin/status/agent_status.h"

namespace vfio_agent {

inline constexpr char kReadyCondition[] = "PassthroughReady";

// True: a unit that is healthy is on the kubelet's list of a resource that is registered. A unit
// that a pod has counts: the node does what it is for. Unknown: nothing is known of the devices.
// The message is for people, and the same as long as nothing changes that they would want to know.
NodeCondition PassthroughReady(const AgentStatus& status);

// True for what is mostly over in a moment: a start, a bind, a kubelet that restarts, a mode.
bool MayPass(const NodeCondition& condition);

// How the last words of an agent that ends are put. `released`: it gives back what nobody holds.
NodeCondition PassthroughEnded(bool released);

}  // namespace vfio_agent
