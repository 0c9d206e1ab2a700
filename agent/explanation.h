// Explanation: why a group has its members and what that means, in an expert's words. Pure.
#pragma once

#include <string>

#include "agent/session.h"
#include "iommu/isolation.h"

namespace vfio_agent {

// The whole answer for one group, lines with a final newline.
std::string ExplainGroup(const Picture& picture, const Grouping& grouping, const GroupPlan& group);

// Why `device` is together with another function: "0000:03:00.0 is with 0000:00:03.0, since …".
// Empty where nothing merges it.
std::string ExplainMerge(const Picture& picture, const Merge& merge);

}  // namespace vfio_agent
