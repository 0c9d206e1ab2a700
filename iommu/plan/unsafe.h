// What is given away although nothing isolates whoever has it: resources[].noiommu. Pure.
#pragma once

#include <string>
#include <string_view>

#include "iommu/plan/plan.h"

namespace vfio_agent {

// Of a group that is not refused, and of a unit, by its reason.
bool IsUnsafe(const GroupPlan& group);
bool IsUnsafe(std::string_view reason);

// True where a unit is on a list already, or would be but for what it waits for.
bool OffersUnsafe(const Plan& plan);

// "bound", or "bound UNSAFE": how tables spell it.
std::string VerdictCell(Verdict verdict, bool unsafe);

}  // namespace vfio_agent
