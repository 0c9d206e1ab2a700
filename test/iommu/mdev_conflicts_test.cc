// Mediated devices and whole devices, and names of types, that do not fit together.
#include <catch2/catch.hpp>

#include "test/iommu/mdev_nodes.h"

namespace vfio_agent {
namespace {

TEST_CASE("VGPU: a group that is to be given whole and to make instances is neither", "[mdev]") {
  NodeFacts facts =
      Node({T4(kT4, 5, 0), Function("0000:3b:00.1", 5, "nvidia", "10de:2204", 0x030000)});
  facts.mdev.parents = {ParentOf(kT4)};
  const Plan plan =
      PlanFor(facts, Wanting({{"GRID T4-1Q", 2}}, MdevSpread::kEach, {{.address = At(kT4)}}));
  const GroupPlan& group = GroupOf(plan, 5);
  CHECK(group.verdict == Verdict::kRefused);
  CHECK(group.actions.empty());
  CHECK(Codes(group.refusals) == "foreign-member 0000:3b:00.0");
  CHECK(States(plan) == "refused refused ");
  for (const Resource& resource : plan.resources) {
    for (const Unit& unit : resource.units) CHECK(unit.state == UnitState::kRefused);
  }
}

TEST_CASE("VGPU: parents may call one type by two names, or not tell one's", "[mdev]") {
  NodeFacts facts = ThreeParents();
  facts.mdev.parents[1].types[0].name = "GRID T4-1B";
  facts.mdev.parents[2].types[0].name = "";
  const Plan plan = PlanFor(facts, Wanting({{"nvidia-222", 1}}));
  CHECK(States(plan) == "to-bind ");
  CHECK(States(plan, "nvidia.com/GRID_T4-1B") == "to-bind ");
  CHECK(States(plan, "nvidia.com/nvidia-222") == "to-bind ");
}

}  // namespace
}  // namespace vfio_agent
