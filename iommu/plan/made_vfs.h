// What the steps of a bind that has failed half-way have made of physical functions, and of vGPUs.
#pragma once

#include <span>

#include "iommu/tenancy/record.h"

namespace vfio_agent {

// Notes in `records` the VFs that the steps `done` have made and the types that they have set, as
// the journal has had it since.
void NoteMadeVfs(std::span<const Action> done, Records& records);

}  // namespace vfio_agent
