// The label of a node that gives away what nothing isolates, beside those of nfd.h. Pure.
#pragma once

#include <string>

#include "iommu/plan/plan.h"

namespace vfio_agent {

// "vfio-agent/passthrough.unsafe=true" as a line, where a unit is such; else nothing.
std::string UnsafeLabel(const Plan& plan);

}  // namespace vfio_agent
