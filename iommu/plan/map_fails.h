// SRIOV-04: virtual functions whose regions a guest cannot map.
#pragma once

#include "iommu/plan/planning.h"

namespace vfio_agent {

// Warns of member `i` where it is a VF of the adapter in an Intel processor.
void WarnMapFails(const Context& context, Draft& draft, size_t i);

}  // namespace vfio_agent
