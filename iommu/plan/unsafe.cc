#include "iommu/plan/unsafe.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace vfio_agent {

bool IsUnsafe(const GroupPlan& group) {
  return group.refusals.empty() &&
         std::ranges::count(group.warnings, Code::kNoiommu, &Refusal::code) > 0;
}

bool IsUnsafe(std::string_view reason) { return reason.find(kUnsafe) != std::string_view::npos; }

bool OffersUnsafe(const Plan& plan) {
  const auto offered = [](const Unit& unit) {
    return unit.state != UnitState::kToBind && unit.state != UnitState::kRefused &&
           IsUnsafe(unit.reason);
  };
  return std::ranges::any_of(plan.resources, [&offered](const Resource& resource) {
    return std::ranges::any_of(resource.units, offered);
  });
}

std::string VerdictCell(Verdict verdict, bool unsafe) {
  return absl::StrFormat("%s%s", Name(verdict), unsafe ? " UNSAFE" : "");
}

}  // namespace vfio_agent
