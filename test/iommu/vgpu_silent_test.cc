// Cards whose driver does not answer for their vGPUs.
#include <catch2/catch.hpp>

#include "test/iommu/vgpu_nodes.h"

namespace vfio_agent {
namespace {

constexpr char kFile[] = "sys/bus/pci/devices/0000:41:00.4/nvidia/current_vgpu_type";

// The first card's driver: nothing of any of its functions.
void Hang(NodeFacts& facts) {
  for (VgpuFunction& function : facts.vgpu.functions) {
    if (function.physical != At(kCardA)) continue;
    if (function.current.known()) function.last = function.current.value();
    function.current = Fact<int>::Unknown(ETIMEDOUT);
    function.silent = kFile;
  }
}

TEST_CASE("VGPU: of a card that hangs all stays listed, and nothing is written", "[vgpu]") {
  NodeFacts facts = TwoCards();
  SetType(facts, kA4, 1145);
  Hang(facts);
  const Plan plan = PlanFor(facts, WantingVgpus({{"1145", 2}}));
  CHECK(Codes(plan.refusals) == "unbind-stuck 0000:41:00.0");
  CHECK_THAT(plan.refusals[0].text, Catch::Contains(std::string("reading /") + kFile));
  CHECK(Written(plan) == "0000:c1:00.4=1145 ");
  CHECK(States(plan) == "unhealthy to-bind ");
  CHECK_THAT(Named(plan, kOneB)->units[0].reason, Catch::StartsWith("unbind-stuck: the driver of"));
  REQUIRE(plan.warnings.size() == 1);  // of the other card
  CHECK(plan.warnings[0].address == At(kCardB));
}

TEST_CASE("VGPU: a count for all cards is not dealt out while one of them hangs", "[vgpu]") {
  NodeFacts facts = TwoCards();
  Hang(facts);
  CHECK(Written(PlanFor(facts, WantingVgpus({{"1145", 2}}, MdevSpread::kRoundRobin))).empty());
}

TEST_CASE("VGPU: what this agent has given is listed also where nothing was ever told", "[vgpu]") {
  NodeFacts facts = OneCard();
  Hang(facts);
  Fill(facts);
  for (VgpuFunction& function : facts.vgpu.functions) function.last.reset();
  const Plan plan = PlanFor(facts, WantingVgpus({{"NVIDIA L40S-1B", 1}}), Asked(Given({kA5})));
  CHECK(States(plan) == "unhealthy ");
  CHECK(Codes(plan.refusals) == "unbind-stuck 0000:41:00.0");
  CHECK(plan.warnings.empty());
}

TEST_CASE("VGPU: no type is called unknown where a card that hangs may have it", "[vgpu]") {
  NodeFacts facts = OneCard();
  Hang(facts);
  Fill(facts);
  const Plan plan = PlanFor(facts, WantingVgpus({{"NVIDIA L40S-1B", 1}}));
  CHECK(Codes(plan.refusals) == "unbind-stuck 0000:41:00.0");
  CHECK(plan.warnings.empty());
}

TEST_CASE("VGPU: a card that tells types but not what else it has room for is not written to",
          "[vgpu]") {
  NodeFacts facts = OneCard();
  SetType(facts, kA4, 1145);
  facts.vgpu.functions[1].silent = "sys/bus/pci/devices/0000:41:00.5/nvidia/creatable_vgpu_types";
  const Plan plan = PlanFor(facts, WantingVgpus({{"1145", 2}}));
  CHECK(Written(plan).empty());
  CHECK(States(plan) == "ready ");
}

}  // namespace
}  // namespace vfio_agent
