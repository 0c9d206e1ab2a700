#include "iommu/bundle/partitions.h"

#include <algorithm>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"

namespace vfio_agent {
namespace {

// The id of the unit that `text`, an address or a number, names.
std::optional<std::string> FindId(const Resource& resource, const std::string& text) {
  size_t number = 0;
  if (absl::SimpleAtoi(text, &number)) {
    if (number >= resource.units.size()) return std::nullopt;
    return resource.units[number].id;
  }
  const auto found = std::ranges::find(resource.units, text, &Unit::id);
  if (found == resource.units.end()) return std::nullopt;
  return found->id;
}

std::string FaultOf(const Resource& resource, const std::string& item) {
  if (size_t number = 0; absl::SimpleAtoi(item, &number)) {
    return absl::StrFormat("its table of partitions names unit %s, and here are units 0 to %d only",
                           item, resource.units.size() - 1);
  }
  return absl::StrFormat("its table of partitions names %s, which is no unit of it here", item);
}

}  // namespace

void ResolvePartitions(const ResourceRule& rule, Resource& resource) {
  for (const std::vector<std::string>& items : rule.partitions) {
    std::vector<std::string>& ids = resource.partitions.emplace_back();
    for (const std::string& item : items) {
      const std::optional<std::string> id = FindId(resource, item);
      if (!id) {
        resource.partitions.clear();
        resource.partitions_fault = FaultOf(resource, item);
        return;
      }
      ids.push_back(*id);
    }
    std::ranges::sort(ids);
  }
}

void WarnPartitions(Plan& plan) {
  for (const Resource& resource : plan.resources) {
    if (resource.partitions_fault.empty()) continue;
    plan.warnings.push_back(
        {.code = Code::kGroupSplit,
         .text = absl::StrFormat("of %s a machine can have one unit only: %s", resource.name,
                                 resource.partitions_fault),
         .remedy =
             "compare resources[].partitions with `vfio-agent list resources`: a device that is "
             "gone shifts the numbers of those after it, addresses do not shift"});
  }
}

}  // namespace vfio_agent
