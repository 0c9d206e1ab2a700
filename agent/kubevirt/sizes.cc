// How many units of a resource one machine can have.
#include <algorithm>
#include <set>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "agent/kubevirt/kubevirt.h"

namespace vfio_agent {
namespace {

// The sizes of those sets whose units can all be had, now or when they are bound.
std::vector<size_t> SetSizes(const Resource& resource) {
  std::set<std::string_view> refused;
  for (const Unit& unit : resource.units) {
    if (unit.state == UnitState::kRefused) refused.insert(unit.id);
  }
  std::vector<size_t> sizes;
  for (const std::vector<std::string>& set : resource.partitions) {
    const bool whole = std::ranges::none_of(
        set, [&refused](const std::string& id) { return refused.contains(id); });
    if (whole) sizes.push_back(set.size());
  }
  return sizes;
}

// Of bundles one machine may have several: every sum of them.
std::vector<size_t> SumsOf(const std::vector<size_t>& sizes) {
  std::set<size_t> sums = {0};
  for (const size_t size : sizes) {
    std::set<size_t> more = sums;
    for (const size_t sum : sums) more.insert(sum + size);
    sums = std::move(more);
  }
  return {std::next(sums.begin()), sums.end()};
}

}  // namespace

std::vector<size_t> SizesOf(const Resource& resource) {
  if (resource.only_partitions) return SumsOf(SetSizes(resource));
  if (resource.partitions.empty() && resource.partitions_fault.empty()) return {};
  std::vector<size_t> sizes = SetSizes(resource);
  sizes.push_back(1);  // one alone can always be had
  std::ranges::sort(sizes);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

std::string SizesText(const std::vector<size_t>& sizes) {
  if (sizes.size() < 2) return absl::StrJoin(sizes, "");
  return absl::StrFormat("%s or %d", absl::StrJoin(sizes.begin(), sizes.end() - 1, ", "),
                         sizes.back());
}

}  // namespace vfio_agent
