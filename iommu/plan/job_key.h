// What jobs, locks and retries know a group by. Pure.
#pragma once

#include <optional>
#include <string>

#include "iommu/plan/plan.h"

namespace vfio_agent {

// The group's number. A parent of mediated devices needs no group: one without has a number below
// -1 that stands for its address. nullopt for other devices without a group, of which nothing is
// written, and for domains of more than 15 bits.
std::optional<int> JobKey(const GroupPlan& group);

// The address that a number below -1 stands for; nullopt for groups.
std::optional<PciAddress> ParentOfKey(int key);

// "group 26", "0000:3b:00.0 (no group)".
std::string SpellJobKey(int key);

}  // namespace vfio_agent
