// Addresses of machines that are no PC: NUMA nodes without processors, several domains, host
// bridges that are platform devices; and what has no isolation at all.
#include <catch2/catch.hpp>

#include "iommu/plan/plan.h"
#include "iommu/plan/unsafe.h"
#include "test/support/facts.h"
#include "test/support/fake_tree.h"

namespace vfio_agent {
namespace {

constexpr char kGrace[] = "0008:01:00.0";
constexpr char kNodes[] = "sys/devices/system/node/node";

void AddNumaNode(FakeTree& tree, int number, const std::string& cpus, const std::string& distance) {
  tree.Write(kNodes + std::to_string(number) + "/cpulist", cpus + "\n");
  tree.Write(kNodes + std::to_string(number) + "/distance", distance + "\n");
}

// A GPU that is a memory node of its own, between two nodes with processors.
struct GraceTree {
  FakeTree tree;
  Policy policy = DefaultPolicy();

  explicit GraceTree(const std::string& distance = "40 80 10") {
    AddNumaNode(tree, 0, "0-71", "10 40 80");
    AddNumaNode(tree, 1, "72-143", "40 10 40");
    AddNumaNode(tree, 2, "", distance);
    tree.Add({.address = kGrace, .device = "0x2941", .group = 5});
    tree.Attribute(kGrace, "numa_node", "2");
    policy.resources[0].numa_nearest = true;
  }
  std::optional<int> Told() const {
    return MakePlan(tree.Facts(), policy, {}).resources.at(0).units.at(0).numa_node;
  }
};

TEST_CASE("NUMA-02: the kubelet is told the nearest node with processors, where asked for",
          "[iommu]") {
  CHECK(GraceTree("40 80 10").Told() == 0);
  CHECK(GraceTree("80 40 10").Told() == 1);
  CHECK(GraceTree("40 40 10").Told() == 0);  // of two as near the lower
}

TEST_CASE("NUMA-02: else, and of a node with processors, the node that the kernel says",
          "[iommu]") {
  GraceTree node;
  SECTION("not asked for") {
    node.policy.resources[0].numa_nearest = false;
    CHECK(node.Told() == 2);
  }
  SECTION("it has processors itself") {
    AddNumaNode(node.tree, 2, "144-215", "40 80 10");
    CHECK(node.Told() == 2);
  }
  SECTION("nobody has any") {
    AddNumaNode(node.tree, 0, "", "10 40 80");
    AddNumaNode(node.tree, 1, "", "40 10 40");
    CHECK(node.Told() == 2);
  }
  SECTION("the distances are not those of these nodes") {
    AddNumaNode(node.tree, 2, "", "40 10");
    CHECK(node.Told() == 2);
  }
  SECTION("the kernel says none") {
    node.tree.Attribute(kGrace, "numa_node", "-1");
    CHECK_FALSE(node.Told());
  }
}

TEST_CASE("the same bus number in several domains: each device is its own", "[iommu]") {
  FakeTree tree;
  for (const char* address : {"0000:01:00.0", "0001:01:00.0", "0008:01:00.0"}) {
    tree.Add({.address = address, .driver = "nvidia", .group = address[3] - '0'});
    tree.Attribute(address, "reset_method", "bus");
  }
  tree.Add({.address = "0001:01:00.1",
            .device = "0x22ba",
            .class_code = "0x040300",
            .driver = "snd_hda_intel",
            .group = 1});
  const Plan plan = DefaultPlan(tree.Facts());
  CHECK(plan.refusals.empty());
  CHECK(plan.warnings.empty());  // nobody shares another domain's bus
  CHECK(Roles(GroupOf(plan, 0)) == "0000:01:00.0 primary bind vfio-pci");
  CHECK(Roles(GroupOf(plan, 1)) ==
        "0001:01:00.0 primary bind vfio-pci\n0001:01:00.1 companion bind vfio-pci");
  CHECK(Roles(GroupOf(plan, 8)) == "0008:01:00.0 primary bind vfio-pci");
  REQUIRE(plan.resources.size() == 1);
  REQUIRE(plan.resources[0].units.size() == 3);
  CHECK(plan.resources[0].units[1].id == "0001:01:00.0");
}

TEST_CASE("noiommu: where it is configured the unit is served, and called unsafe", "[iommu]") {
  NodeFacts facts = Node({Gpu("0000:3b:00.0", 17, "vfio-pci")});
  facts.groups.at(17).noiommu = true;
  facts.vfio_nodes = {"vfio", "noiommu-17"};
  Policy policy = DefaultPolicy();
  policy.resources[0].noiommu = true;
  const Plan plan = MakePlan(facts, policy, {});
  CHECK(plan.refusals.empty());
  CHECK(Codes(plan.warnings) == "noiommu 0000:3b:00.0");
  CHECK_THAT(plan.warnings.at(0).text, Catch::StartsWith("UNSAFE: "));
  const Unit& unit = plan.resources.at(0).units.at(0);
  CHECK(unit.state == UnitState::kReady);
  CHECK_THAT(unit.reason, Catch::StartsWith("noiommu: UNSAFE"));
  CHECK(IsUnsafe(unit.reason));
  CHECK(IsUnsafe(GroupOf(plan, 17)));
  CHECK(VerdictCell(GroupOf(plan, 17).verdict, true) == "bound UNSAFE");
  CHECK_FALSE(IsUnsafe(GroupOf(DefaultPlan(facts), 17)));  // refused: nobody is given it
  facts.vfio_nodes = {"vfio", "17"};                       // not its node
  CHECK(MakePlan(facts, policy, {}).resources.at(0).units.at(0).state == UnitState::kUnhealthy);
}

TEST_CASE("noiommu: an unbound device has no group yet, and what to do is told", "[iommu]") {
  NodeFacts facts = NodeWithoutIommu({Gpu("0000:3b:00.0", 17)});
  facts.iommu.unsafe_noiommu = true;
  Policy policy = DefaultPolicy();
  policy.resources[0].noiommu = true;
  const Plan plan = MakePlan(facts, policy, {});
  CHECK(Codes(plan.refusals) == "no-iommu-group 0000:3b:00.0");
  CHECK_THAT(plan.refusals.at(0).remedy,
             Catch::Contains("driverctl set-override 0000:3b:00.0 vfio-pci"));
}

TEST_CASE("a kernel with iommufd alone: served where configured, else the key is named",
          "[iommu]") {
  NodeFacts facts = Node({Gpu("0000:3b:00.0", 17, "vfio-pci")});
  facts.devices[0].vfio_cdev = "vfio0";
  facts.vfio_nodes = {"devices/vfio0"};
  facts.iommu_node = true;
  Policy policy = DefaultPolicy();
  const Unit unit = MakePlan(facts, policy, {}).resources.at(0).units.at(0);
  CHECK(unit.state == UnitState::kUnhealthy);
  CHECK(unit.reason ==
        "node-missing: /dev/vfio/17 is not there, since this kernel has iommufd alone: set "
        "kubelet.iommufd");
  policy.iommufd = true;
  CHECK(MakePlan(facts, policy, {}).resources.at(0).units.at(0).state == UnitState::kReady);
}

}  // namespace
}  // namespace vfio_agent
