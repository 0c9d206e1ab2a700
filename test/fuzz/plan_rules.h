// What holds of every plan, whatever the node looks like.
#pragma once

#include "iommu/plan/plan.h"

namespace vfio_agent {

// Ends the process (Require) where `plan`, made of `facts`, would hurt a node.
void RequireSoundPlan(const NodeFacts& facts, const Plan& plan);

}  // namespace vfio_agent
