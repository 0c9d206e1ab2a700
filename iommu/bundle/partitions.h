// Partitions: the sets of units that hardware lets one guest have together: NVLink's fabric. Pure.
#pragma once

#include "iommu/plan/plan.h"
#include "iommu/policy/policy.h"

namespace vfio_agent {

// Fills in the resource's partitions from the rule's table. One entry that does not fit voids the
// table, and partitions_fault says which: where a GPU is gone the numbers of the others have moved.
void ResolvePartitions(const ResourceRule& rule, Resource& resource);

// One warning for each resource with a fault: until somebody mends its table a machine with
// several units is refused by Allocate, where nobody looks first.
void WarnPartitions(Plan& plan);

}  // namespace vfio_agent
