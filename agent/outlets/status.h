// What the daemon's parts come to as an AgentStatus, and how one is printed. Pure.
#pragma once

#include <string>
#include <vector>

#include "agent/session.h"
#include "agent/text/json.h"
#include "agent/text/table.h"
#include "deviceplugin/offer/offer.h"
#include "deviceplugin/status/agent_status.h"

namespace vfio_agent {

// The name of the status socket below the state directory.
inline constexpr char kStatusSocket[] = "status.sock";

// `offers`: those that were made of the picture.
NodeStatus MakeNodeStatus(const Picture& picture, const std::vector<Offer>& offers);
std::vector<JobStatus> MakeJobStatus(const Underway& underway);

// The codes of units that were listed as healthy before and are not now, because somebody else than
// this agent has changed the node: driver-changed, group-changed, device-gone, node-missing.
std::vector<std::string> FindDrift(const NodeStatus& before, const NodeStatus& now);

// Schema vfio-agent/status/v1.
Json StatusToJson(const AgentStatus& status);
// Tables in that style; `wide`: with more of them, however long.
std::string StatusToText(const AgentStatus& status, absl::Time now, bool wide,
                         TableStyle style = {.width = 100});

}  // namespace vfio_agent
