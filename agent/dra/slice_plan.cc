#include "agent/dra/slice_plan.h"

#include <algorithm>

namespace vfio_agent {
namespace {

bool Stands(const Json& slice, const std::vector<SeenSlice>& seen, int64_t generation,
            size_t count) {
  const SeenSlice wanted{.name = slice["metadata"]["name"],
                         .content = slice["metadata"]["annotations"][kContentAnnotation],
                         .generation = generation,
                         .count = static_cast<int64_t>(count)};
  return std::ranges::count(seen, wanted) == 1;
}

int64_t HighestOf(const std::vector<SeenSlice>& seen, int64_t least) {
  for (const SeenSlice& slice : seen) least = std::max(least, slice.generation);
  return least;
}

}  // namespace

SlicePlan PlanSlices(const SlicePool& pool, const std::vector<DraDevice>& devices,
                     const std::vector<SeenSlice>& seen, int64_t last) {
  SlicePlan plan{.generation = HighestOf(seen, last)};
  SlicePool next = pool;
  next.generation = plan.generation + 1;
  std::vector<Json> wanted = MakeSlices(next, devices);
  const bool stands = std::ranges::all_of(wanted, [&](const Json& slice) {
    return Stands(slice, seen, plan.generation, wanted.size());
  });
  for (const SeenSlice& slice : seen) {
    const bool named = std::ranges::any_of(
        wanted, [&slice](const Json& other) { return other["metadata"]["name"] == slice.name; });
    if (!named) plan.remove.push_back(slice.name);
  }
  if (stands) return plan;
  plan.apply = std::move(wanted);
  plan.generation = next.generation;
  return plan;
}

}  // namespace vfio_agent
