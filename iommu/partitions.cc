#include "iommu/partitions.h"

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

}  // namespace

void ResolvePartitions(const ResourceRule& rule, Resource& resource) {
  for (const std::vector<std::string>& items : rule.partitions) {
    std::vector<std::string>& ids = resource.partitions.emplace_back();
    for (const std::string& item : items) {
      const std::optional<std::string> id = FindId(resource, item);
      if (!id) {
        resource.partitions.clear();
        resource.partitions_fault = absl::StrFormat(
            "the table of partitions names %s, and the resource has %d units without it", item,
            resource.units.size());
        return;
      }
      ids.push_back(*id);
    }
    std::ranges::sort(ids);
  }
}

}  // namespace vfio_agent
