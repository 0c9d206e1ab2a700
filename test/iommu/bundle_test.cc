// Bundles: which devices are one unit, and what is none.
#include <catch2/catch.hpp>

#include "test/iommu/bundle_nodes.h"

namespace vfio_agent {
namespace {

TEST_CASE("a board is one unit of all GPUs and all NVSwitches", "[iommu]") {
  const Plan plan = PlanOf(SmallBoard(), Bundled({Gpus(4), Nvswitches()}));
  CHECK(Units(plan) == "11+21+31+41+02+03 ready\n");
  const Unit& unit = plan.resources[0].units[0];
  CHECK(unit.id == "0000:11:00.0");
  CHECK(unit.group == 10);
  CHECK(unit.groups == std::vector<int>{1, 2, 10, 11, 12, 13});
  CHECK(GroupsOf(unit) == unit.groups);
  CHECK_FALSE(unit.numa_node);  // of two nodes: none that a kubelet could align with
  CHECK(plan.resources[0].name == kBundleName);
  CHECK(plan.resources[0].device == 0x2330);
  CHECK(plan.refusals.empty());
}

TEST_CASE("units are of the devices that are nearest to each other", "[iommu]") {
  NodeFacts facts = SmallBoard();
  CHECK(Units(PlanOf(facts, Bundled({Gpus(2)}))) == "11+21 ready\n31+41 ready\n");
  // Not the next address, but the other one of the same node.
  Find(facts, "0000:21:00.0").numa_node = 1;
  Find(facts, "0000:31:00.0").numa_node = 0;
  const Plan plan = PlanOf(facts, Bundled({Gpus(2)}));
  CHECK(Units(plan) == "11+31 ready\n21+41 ready\n");
  CHECK(plan.resources[0].units[0].numa_node == 0);
}

TEST_CASE("a GPU comes with the NIC under its switch, and the pairs are told", "[iommu]") {
  NodeFacts facts = SmallBoard();
  Plan plan = PlanOf(facts, Bundled({Gpus(1), Nics(1, true)}));
  CHECK(Units(plan) == "11+12 ready\n21+22 ready\n31+32 ready\n41+42 ready\n");
  CHECK(plan.resources[0].units[1].pairs ==
        std::vector{std::pair(At("0000:21:00.0"), At("0000:22:00.0"))});
  plan = PlanOf(facts, Bundled({Gpus(2), Nics(2, true)}));
  CHECK(Units(plan) == "11+21+12+22 ready\n31+41+32+42 ready\n");
  CHECK(plan.resources[0].units[0].pairs.size() == 2);
}

TEST_CASE("a GPU without a NIC under its switch is refused, and so is the NIC elsewhere",
          "[iommu]") {
  NodeFacts facts = SmallBoard();
  Find(facts, "0000:22:00.0").path = {At("0000:90:00.0")};
  Find(facts, "0000:22:00.0").root = "pci0000:90";
  const Plan plan = PlanOf(facts, Bundled({Gpus(1), Nics(1, true)}));
  CHECK(Codes(plan.refusals) == "group-split 0000:21:00.0\ngroup-split 0000:22:00.0");
  CHECK(
      plan.refusals.at(0).text ==
      "the unit 0000:21:00.0 of nvidia.com/board is not whole: 0 of 1 NICs under its PCIe switch");
  CHECK(plan.refusals.at(1).text ==
        "0000:22:00.0 is left over and in no unit of nvidia.com/board: no unit under its PCIe "
        "switch lacks one of the NICs");
  CHECK(GroupOf(plan, 11).verdict == Verdict::kRefused);
  CHECK(GroupOf(plan, 10).verdict == Verdict::kBound);
  // Without `near: switch` the nearest one will do.
  CHECK(PlanOf(facts, Bundled({Gpus(1), Nics(1)})).refusals.empty());
}

TEST_CASE("what does not fill a unit is refused and says what is missing", "[iommu]") {
  NodeFacts facts = SmallBoard();
  std::erase_if(facts.devices, [](const PciDevice& d) { return d.address == At("0000:31:00.0"); });
  const Plan plan = PlanOf(facts, Bundled({Gpus(4), Nvswitches()}));
  CHECK(Units(plan) == "11+21+41+02+03 refused\n");
  CHECK(plan.refusals.size() == 5);
  CHECK(plan.refusals.at(0).text ==
        "the unit 0000:11:00.0 of nvidia.com/board is not whole: 3 of 4 GPUs");
  CHECK(plan.refusals.at(0).code == Code::kGroupSplit);
  CHECK(Units(PlanOf(SmallBoard(), Bundled({Gpus(4), Nvswitches(3)}))) ==
        "11+21+31+41+02+03 refused\n");
}

TEST_CASE("half a board is nobody's: NVSwitches that two units could claim", "[iommu]") {
  const Plan plan = PlanOf(SmallBoard(), Bundled({Gpus(2), Nvswitches()}));
  CHECK(Units(plan) == "02 refused\n03 refused\n11+21 refused\n31+41 refused\n");
  CHECK(GroupOf(plan, 1).refusals.at(0).text ==
        "0000:02:00.0 is left over and in no unit of nvidia.com/board: it is no nearer to one unit "
        "than to another (count: all)");
  CHECK(GroupOf(plan, 10).refusals.at(0).text ==
        "the unit 0000:11:00.0 of nvidia.com/board is not whole: a part of a board: 0000:02:00.0 "
        "of the NVSwitches (count: all) is no nearer to it than to 1 other unit");
}

// Two boards, each with its NVSwitch below the switch of its first GPU.
NodeFacts TwoBoards() {
  NodeFacts facts = SmallBoard();
  for (const auto& [address, bridge] :
       {std::pair("0000:02:00.0", "0000:10:00.0"), std::pair("0000:03:00.0", "0000:30:00.0")}) {
    Find(facts, address).path = {At(bridge)};
    Find(facts, address).root = std::string("pci") + std::string(bridge).substr(0, 7);
  }
  return facts;
}

TEST_CASE("with two boards each unit has the NVSwitches of its own", "[iommu]") {
  NodeFacts facts = TwoBoards();
  CHECK(Units(PlanOf(facts, Bundled({Gpus(2), Nvswitches()}))) ==
        "11+21+02 ready\n31+41+03 ready\n");
  // One GPU for a unit: those with the NVSwitch would have half a board, the others nothing of it.
  CHECK(Units(PlanOf(facts, Bundled({Gpus(1), Nvswitches()}))) ==
        "11+02 refused\n21 refused\n31+03 refused\n41 refused\n");
}

TEST_CASE("a board that lacks what the other has is refused, and the other is not", "[iommu]") {
  NodeFacts facts = TwoBoards();
  facts.devices.push_back(Under("0000:30:00.0", 1, Nvswitch("0000:33:00.0", 3)));
  facts.groups.try_emplace(3);
  facts.vfio_nodes.insert("3");
  std::ranges::sort(facts.devices, {}, &PciDevice::address);
  const Plan plan = PlanOf(facts, Bundled({Gpus(2), Nvswitches()}));
  CHECK(Units(plan) == "11+21+02 refused\n31+41+03+33 ready\n");
  CHECK(GroupOf(plan, 1).refusals.at(0).text ==
        "the unit 0000:11:00.0 of nvidia.com/board is not whole: 1 of 2 NVSwitches");
}

TEST_CASE("a group is never divided between two bundles", "[iommu]") {
  NodeFacts facts = SmallBoard();
  Find(facts, "0000:21:00.0").group = 10;
  Find(facts, "0000:12:00.0").group = 10;
  CHECK(Units(PlanOf(facts, Bundled({Gpus(2), Nics(1)}))).starts_with("11+21+12 ready\n"));
  const Plan plan = PlanOf(facts, Bundled({Gpus(1), Nics(1)}));
  CHECK(Units(plan).starts_with("11+21+12 refused\n"));
  CHECK(GroupOf(plan, 10).refusals.at(0).text ==
        "the unit 0000:11:00.0 of nvidia.com/board is not whole: more share its IOMMU group than "
        "a unit takes");
}

TEST_CASE("a device that two entries select is the first one's, and the bundle lacks it",
          "[iommu]") {
  Policy policy = Bundled({Gpus(4)});
  policy.resources.insert(policy.resources.begin(),
                          {.name = "nvidia.com/one", .select = {{.address = At("0000:21:00.0")}}});
  const Plan plan = PlanOf(SmallBoard(), policy);
  CHECK(Units(plan) == "11+31+41 refused\n");
  CHECK(plan.resources.at(1).name == "nvidia.com/one");
  CHECK(plan.resources.at(1).units.at(0).state == UnitState::kReady);
}

TEST_CASE("name-collision: a bundle is not bound under a name that another entry has", "[bundle]") {
  Policy policy = Bundled({Gpus(2)});
  const ResourceRule nics = {.name = kBundleName, .select = {{.vendor = 0x15b3}}};
  policy.resources.insert(GENERATE(0, 1) == 0 ? policy.resources.begin() : policy.resources.end(),
                          nics);
  policy.resources.back().bundle_by_device = !policy.resources.back().bundle.empty();
  const Plan plan = PlanOf(SmallBoard(), policy);
  CHECK_THAT(Codes(plan.refusals), Catch::Contains("name-collision 0000:11:00.0"));
  CHECK(GroupOf(plan, 10).verdict == Verdict::kRefused);
  CHECK(GroupOf(plan, 20).verdict == Verdict::kBound);
  REQUIRE(plan.resources.size() == 1);
  CHECK(Units(plan) == "12 ready\n22 ready\n32 ready\n42 ready\n");
}

}  // namespace
}  // namespace vfio_agent
