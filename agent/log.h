// The log: one line on standard error for each event. The only user of spdlog.
#pragma once

#include "agent/daemon/event.h"

namespace vfio_agent {

// `level`: debug, info, warn or error; `format`: text or json (the settings have checked both).
void SetUpLog(const std::string& level, const std::string& format);

// Writes the line if its level is shown. Only the loop's thread calls it.
void Log(const Event& event);

}  // namespace vfio_agent
