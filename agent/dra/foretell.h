// What would be published of a node once all that is planned for it is bound. Pure.
#pragma once

#include <vector>

#include "agent/dra/device.h"
#include "agent/dra/slices.h"
#include "agent/session.h"
#include "agent/text/table.h"

namespace vfio_agent {

std::vector<DraDevice> ForetellDraDevices(const Picture& picture);

// The pool of this node, of the first generation.
SlicePool PoolOf(const Settings& settings);

// One row for each device.
TableRows DraDeviceRows(const std::vector<DraDevice>& devices);

// {"schema": "vfio-agent/slices/v1", "slices": […]}
Json SlicesDocument(const SlicePool& pool, const std::vector<DraDevice>& devices);

}  // namespace vfio_agent
