// Extended GPU Memory: which containers can have a region of it. Pure.
#pragma once

#include <vector>

#include "iommu/plan/plan.h"

namespace vfio_agent {

// One share for each of `regions`. A region goes to a container with all of its GPUs and to no
// other: with fewer, two guests would have one memory. A container asks for several units of one
// resource at most together, so GPUs of two resources leave their region to nobody. So do resource
// claims, and a unit of these GPUs' model that is still to be bound.
std::vector<EgmShare> ShareEgm(const std::vector<EgmRegion>& regions,
                               const std::vector<Resource>& resources);

// "/dev/egm4 (Extended GPU Memory): with 0008:01:00.0 0009:01:00.0 …", for people.
std::string Spell(const EgmShare& share);

}  // namespace vfio_agent
