// What a picture shows of units that another mode has no use for. Pure.
#pragma once

#include "agent/dra/slices.h"
#include "agent/mode/mode_switch.h"
#include "agent/session.h"

namespace vfio_agent {

// Fills in what view is to have of a switch to a mode of this use: listed, advertised, tenants and
// sliced.
void SeeWhatGoes(const Picture& picture, const ModeUse& use, const SlicedUnits& sliced,
                 ModeView& view);

// Who keeps the mode from having what it selects: by processes and pods that have a selected
// device.
std::vector<std::string> WhoKeeps(const Plan& plan);

// The writes that do not return.
std::vector<std::string> WhatIsStuck(const Underway& underway);

}  // namespace vfio_agent
