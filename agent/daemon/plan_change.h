// PlanChange: what another configuration makes of one group. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "iommu/plan/plan.h"

namespace vfio_agent {

struct PlanChange {
  enum class Kind {
    kWillBind,        // will be taken from its driver, and served
    kServed,          // is bound already, and will be served
    kRenamed,         // stays served, under another name
    kUnits,           // stays served, in other units
    kNoLongerServed,  // was served or to be bound, and is selected no more or refused
    kRefused,         // newly selected and refused, or refused for other reasons
    kNoLongerSelected,
    // Of a physical function, which stays with the host:
    kVfsToMake,  // virtual functions will be made of it
    kVfsStay,    // it has another number of them, which is not changed: they stay in service
    kVfsLeft,    // is selected no more; those that were made of it stay until a release
  };
  Kind kind = Kind::kWillBind;
  GroupPlan group;     // as it will be; as it was where it will not be planned for any more
  std::string before;  // the resource that it had; empty: none
};

// One for each group of which the plans, made of the same facts, say something else.
std::vector<PlanChange> ComparePlans(const Plan& before, const Plan& after);

// "will be bound", "no longer served", "renamed" and so on.
std::string_view Name(PlanChange::Kind kind);

}  // namespace vfio_agent
