// Words of the mode that others go by, and what to do about a switch that is not over.
#pragma once

#include <string>
#include <string_view>

#include "deviceplugin/status/agent_status.h"

namespace vfio_agent {

// With it begins the reason of a unit that a mode withholds.
inline constexpr std::string_view kWithheldByMode = "mode: ";
// With it begins what is said of a switch that waits for somebody's use to end.
inline constexpr std::string_view kWaitsFor = "waits for ";

std::string RemedyForWait(const ModeStatus& mode);

}  // namespace vfio_agent
