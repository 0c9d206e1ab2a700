// SlicePlan: from the slices that the API server has to those that are wanted. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/dra/slices.h"

namespace vfio_agent {

// One of our slices, as the API server shows it.
struct SeenSlice {
  std::string name;
  std::string content;  // by the annotation
  int64_t generation = 0;
  int64_t count = 0;
  bool operator==(const SeenSlice&) const = default;
};

struct SlicePlan {
  std::vector<Json> apply;          // written whole, whatever was there
  std::vector<std::string> remove;  // names, after the others were applied
  int64_t generation = 0;           // of what stands there then
  bool empty() const { return apply.empty() && remove.empty(); }
};

// Slices of a pool belong together by generation and number: where one of them is not as it should
// be, all of them are written with a new generation, which is higher than any that was seen and
// than `last`, which was written last (0: none). The scheduler leaves a pool alone that is not
// complete.
SlicePlan PlanSlices(const SlicePool& pool, const std::vector<DraDevice>& devices,
                     const std::vector<SeenSlice>& seen, int64_t last);

}  // namespace vfio_agent
