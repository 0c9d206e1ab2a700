#include "agent/dra/slice_plan.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_format.h"

namespace vfio_agent {
namespace {

const SlicePool kPool = {.node = "node-1", .node_uid = "u-1"};

std::vector<DraDevice> Many(size_t count) {
  std::vector<DraDevice> devices;
  for (size_t i = 0; i < count; ++i) {
    const std::string name = absl::StrFormat("device-%03d", i);
    devices.push_back({.name = name, .resource = "nvidia.com/X", .unit = name});
  }
  return devices;
}

// What the API server has after the plan was carried out.
std::vector<SeenSlice> After(const SlicePlan& plan) {
  std::vector<SeenSlice> seen;
  for (const Json& slice : plan.apply) {
    seen.push_back({.name = slice["metadata"]["name"],
                    .content = slice["metadata"]["annotations"][kContentAnnotation],
                    .generation = slice["spec"]["pool"]["generation"],
                    .count = slice["spec"]["pool"]["resourceSliceCount"]});
  }
  return seen;
}

TEST_CASE("slices that stand as they should are left alone", "[dra]") {
  const SlicePlan first = PlanSlices(kPool, Many(130), {}, 0);
  CHECK(first.apply.size() == 2);
  CHECK(first.generation == 1);
  CHECK(PlanSlices(kPool, Many(130), After(first), 1).empty());
  CHECK(PlanSlices(kPool, {}, {}, 0).empty());
}

TEST_CASE("where one slice is wrong all are written, with a higher generation", "[dra]") {
  const SlicePlan first = PlanSlices(kPool, Many(130), {}, 0);
  std::vector<SeenSlice> seen = After(first);
  SECTION("a device has changed") {
    std::vector<DraDevice> devices = Many(130);
    devices[129].attributes["numaNode"] = int64_t{1};
    const SlicePlan next = PlanSlices(kPool, devices, seen, 1);
    CHECK(next.apply.size() == 2);
    CHECK(next.generation == 2);
    CHECK(PlanSlices(kPool, devices, After(next), 2).empty());
    return;
  }
  SECTION("somebody has removed one") { seen.pop_back(); }
  SECTION("the kubelet has removed all") { seen.clear(); }
  SECTION("somebody has written one") { seen[1].content = "other"; }
  SECTION("one was not written yet when an agent ended") { seen[0].generation = 0; }
  SECTION("one counts others") { seen[0].count = 3; }
  const SlicePlan next = PlanSlices(kPool, Many(130), seen, 1);
  CHECK(next.apply.size() == 2);
  CHECK(next.generation == 2);
  CHECK(next.remove.empty());
}

TEST_CASE("a generation is higher than any that was seen", "[dra]") {
  const std::vector<SeenSlice> seen = {{.name = "node-1-vfio-agent-0", .generation = 41}};
  CHECK(PlanSlices(kPool, Many(1), seen, 3).generation == 42);
  CHECK(PlanSlices(kPool, Many(1), {}, 3).generation == 4);
}

TEST_CASE("slices that nobody wants any more are removed", "[dra]") {
  const SlicePlan first = PlanSlices(kPool, Many(130), {}, 0);
  const SlicePlan fewer = PlanSlices(kPool, Many(10), After(first), 1);
  CHECK(fewer.apply.size() == 1);
  CHECK(fewer.remove == std::vector<std::string>{"node-1-vfio-agent-1"});
  const SlicePlan none = PlanSlices(kPool, {}, After(first), 1);
  CHECK(none.apply.empty());
  CHECK(none.remove.size() == 2);
}

TEST_CASE("a Node that was made anew gets slices of its own", "[dra]") {
  const SlicePlan first = PlanSlices(kPool, Many(1), {}, 0);
  SlicePool other = kPool;
  other.node_uid = "u-2";
  CHECK(PlanSlices(other, Many(1), After(first), 1).apply.size() == 1);
}

}  // namespace
}  // namespace vfio_agent
