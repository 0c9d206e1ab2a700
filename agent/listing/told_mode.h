// The mode as the running daemon has it: a switch that is under way is the daemon's, and neither
// the configuration nor the picture of a command shows it.
#pragma once

#include <optional>

#include "agent/session.h"
#include "deviceplugin/status/agent_status.h"

namespace vfio_agent {

// By the daemon's word; where none answers, by what the last one has left on disk. nullopt: the
// configuration's mode counts, and is in force.
std::optional<ModeStatus> ReadToldMode(const Session& session);

// Plans by it from now on, where it is a mode.
void UseToldMode(const std::optional<ModeStatus>& told, Session& session);

// As Withhold(), with what the switch waits for, where one is under way.
void WithholdAsTold(const std::optional<ModeStatus>& told, const ModeRule& rule, Plan& plan);

}  // namespace vfio_agent
