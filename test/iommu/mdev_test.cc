#include <algorithm>
#include <catch2/catch.hpp>

#include "test/iommu/mdev_nodes.h"

namespace vfio_agent {
namespace {

TEST_CASE("VGPU: a parent keeps its driver and gets its instances by a write each", "[mdev]") {
  NodeFacts facts = Node({T4(kT4, 5, 0)});
  facts.mdev.parents = {ParentOf(kT4)};
  const Plan plan = PlanFor(facts, Wanting({{"GRID T4-1Q", 2}}));
  const GroupPlan& group = GroupOf(plan, 5);
  CHECK(group.verdict == Verdict::kBind);
  CHECK(group.resource == kQ1);
  CHECK(Roles(group) == "0000:3b:00.0 primary keep");
  CHECK(Shell(group.actions) ==
        "echo 00000000-3b00-8f10-8000-25c9eaaff85a > "
        "/sys/bus/pci/devices/0000:3b:00.0/mdev_supported_types/nvidia-222/create\n"
        "echo 00000000-3b00-8f10-8001-25c9eaaff85a > "
        "/sys/bus/pci/devices/0000:3b:00.0/mdev_supported_types/nvidia-222/create");
  CHECK(States(plan) == "to-bind to-bind ");
  CHECK(OpName(group.actions[0]) == "create-mdev");
  CHECK(DevicesOf(group.actions).empty());
}

TEST_CASE("VGPU: the uuid is of parent, type and index, and of nothing else", "[mdev]") {
  const PciAddress t4 = At(kT4);
  const std::string uuid = MdevUuid(t4, "nvidia-222", 0);
  CHECK(IsUuid(uuid));
  CHECK(uuid[14] == '8');  // the version
  CHECK(uuid == MdevUuid(t4, "nvidia-222", 0));
  CHECK(uuid != MdevUuid(t4, "nvidia-222", 1));
  CHECK(uuid != MdevUuid(t4, "nvidia-223", 0));
  CHECK(uuid != MdevUuid(At("0000:3b:00.1"), "nvidia-222", 0));
  CHECK(uuid != MdevUuid(At("10000:3b:00.0"), "nvidia-222", 0));
  CHECK(IsOwnMdev({.uuid = uuid, .parent = t4, .type = "nvidia-222"}));
  CHECK(IsOwnMdev({.uuid = MdevUuid(t4, "nvidia-222", 16383), .parent = t4, .type = "nvidia-222"}));
  CHECK_FALSE(IsOwnMdev({.uuid = uuid, .parent = t4, .type = "nvidia-225"}));
  CHECK_FALSE(IsOwnMdev({.uuid = uuid, .parent = At(kT4b), .type = "nvidia-222"}));
  CHECK_FALSE(IsOwnMdev({.uuid = uuid, .parent = std::nullopt, .type = "nvidia-222"}));
  CHECK_FALSE(IsOwnMdev({.uuid = kForeign, .parent = t4, .type = "nvidia-222"}));
}

TEST_CASE("VGPU: nothing is made beyond what the kernel has room for, and the plan says so",
          "[mdev]") {
  NodeFacts facts = Node({T4(kT4, 5, 0)});
  facts.mdev.parents = {ParentOf(kT4, 1)};
  const Plan plan = PlanFor(facts, Wanting({{"nvidia-222", 3}}));
  CHECK(Created(plan) == "3b:1 ");
  REQUIRE(plan.warnings.size() == 1);
  CHECK(plan.warnings[0].text ==
        "2 more of type GRID T4-1Q (nvidia-222) are wanted than the kernel has room for");
  facts.mdev.parents[0].types[0].available.reset();
  CHECK(Created(PlanFor(facts, Wanting({{"nvidia-222", 3}}))).empty());
}

TEST_CASE("VGPU: counts are for each parent, or dealt out by parent or by NUMA node", "[mdev]") {
  const NodeFacts facts = ThreeParents();
  const auto created = [&](int count, MdevSpread spread) {
    return Created(PlanFor(facts, Wanting({{"GRID T4-1Q", count}}, spread)));
  };
  CHECK(created(2, MdevSpread::kEach) == "3b:2 5e:2 af:2 ");
  CHECK(created(4, MdevSpread::kRoundRobin) == "3b:2 5e:1 af:1 ");
  CHECK(created(4, MdevSpread::kNuma) == "3b:1 5e:1 af:2 ");
  CHECK(created(12, MdevSpread::kNuma) == "3b:4 5e:4 af:4 ");
  const Plan plan = PlanFor(facts, Wanting({{"GRID T4-1Q", 13}}, MdevSpread::kNuma));
  CHECK(plan.warnings.size() == 1);
}

TEST_CASE("VGPU: what is there counts, whoever made it, and nothing is made twice", "[mdev]") {
  NodeFacts facts = Node({T4(kT4, 5, 0)});
  facts.mdev.parents = {ParentOf(kT4, 3)};
  AddInstance(facts, kForeign, kT4, 40);
  AddInstance(facts, MdevUuid(At(kT4), "nvidia-222", 1), kT4, 41);
  const Plan plan = PlanFor(facts, Wanting({{"GRID T4-1Q", 3}}));
  CHECK(GroupOf(plan, 5).actions ==
        std::vector<Action>{CreateMdev{At(kT4), "nvidia-222", MdevUuid(At(kT4), "nvidia-222", 0)}});
  const Plan done = PlanFor(facts, Wanting({{"GRID T4-1Q", 2}}));
  CHECK(GroupOf(done, 5).verdict == Verdict::kBound);
  CHECK(GroupOf(done, 5).actions.empty());
  CHECK(States(done) == "ready ready ");
}

TEST_CASE("VGPU: an instance of others is offered where its type is named, also by count 0",
          "[mdev]") {
  NodeFacts facts = Node({T4(kT4, 5, 0)});
  facts.mdev.parents = {ParentOf(kT4)};
  AddInstance(facts, kForeign, kT4, 40);
  const Plan plan = PlanFor(facts, Wanting({{"GRID T4-1Q", 0}}));
  REQUIRE(States(plan) == "ready ");
  const Unit& unit = Named(plan, kQ1)->units[0];
  CHECK(unit.id == kForeign);
  CHECK(unit.group == 40);
  CHECK(unit.numa_node == 0);
  CHECK(unit.primary == At(kT4));
  CHECK(unit.addresses.empty());
  CHECK(States(PlanFor(facts, Wanting({{"GRID T4-4Q", 0}}))) == "none");
}

TEST_CASE("VGPU: a parent is no whole device, whatever the resources select", "[mdev]") {
  NodeFacts facts = Node({T4(kT4, 5, 0), Gpu("0000:81:00.0", 9)});
  facts.mdev.parents = {ParentOf(kT4)};
  const Policy policy = Wanting({{"GRID T4-1Q", 0}}, MdevSpread::kEach, {{.address = At(kT4)}});
  const Plan plan = PlanFor(facts, policy, Asked());
  CHECK(GroupOf(plan, 5).actions.empty());
  CHECK(GroupOf(plan, 9).verdict == Verdict::kBind);
  Policy excluded = policy;
  excluded.resources[0].exclude = {{.address = At(kT4)}};
  CHECK(GroupOf(PlanFor(facts, excluded, Asked()), 5).refusals.empty());
}

TEST_CASE("VGPU: what keeps an instance from guests is said", "[mdev]") {
  NodeFacts facts = Node({T4(kT4, 5, 0)});
  facts.mdev.parents = {ParentOf(kT4)};
  AddInstance(facts, kForeign, kT4, 40);
  const Policy policy = Wanting({{"GRID T4-1Q", 1}});
  Custody custody;
  custody.tenancy = Tenancy{};
  const auto unit = [&] { return Named(PlanFor(facts, policy, custody), kQ1)->units[0]; };
  REQUIRE(unit().state == UnitState::kReady);
  SECTION("a pod has it") {
    custody.tenancy->claims.list = {{.pod_namespace = "team",
                                     .pod = "vm",
                                     .container = "compute",
                                     .resource = kQ1,
                                     .unit = kForeign}};
    CHECK(unit().state == UnitState::kHeld);
    custody.tenancy->claims.list[0].resource = "nvidia.com/OTHER";
    CHECK(unit().state == UnitState::kRefused);
  }
  SECTION("it was just given") {
    custody.tenancy->grants = {{.resource = kQ1, .unit = kForeign, .group = 40}};
    CHECK(unit().state == UnitState::kHeld);
  }
  SECTION("a process has it without a pod") {
    custody.tenancy->open[40] = {{.pid = 4242, .command = "qemu-kvm"}};
    CHECK(unit().reason ==
          "in-use-holder: group 40 is open, and no pod has it: pid 4242 (qemu-kvm)");
  }
  SECTION("its node is missing") {
    facts.vfio_nodes.erase("40");
    CHECK(unit().reason == "node-missing: /dev/vfio/40 is not there");
    CHECK(unit().state == UnitState::kUnhealthy);
  }
  SECTION("the kernel has nodes of devices alone") {
    facts.vfio_nodes = {"devices/vfio3"};
    facts.iommu_node = true;
    CHECK(unit().reason == "node-missing: /dev/vfio/40 is not there");
    facts.mdev.instances[0].cdev = "vfio3";
    CHECK_THAT(unit().reason, Catch::EndsWith("set kubelet.iommufd"));
    Policy iommufd = policy;
    iommufd.iommufd = true;
    CHECK(States(PlanFor(facts, iommufd, custody)) == "ready ");
    facts.iommu_node = false;
    CHECK(States(PlanFor(facts, iommufd, custody)) == "unhealthy ");
  }
  SECTION("it has no driver") {
    facts.mdev.instances[0].driver.reset();
    CHECK(unit().state == UnitState::kUnhealthy);
  }
  SECTION("it has no group") {
    facts.mdev.instances[0].group.reset();
    CHECK(unit().state == UnitState::kRefused);
  }
}

TEST_CASE("VGPU: what cannot be planned is refused with what to do", "[mdev]") {
  NodeFacts facts = Node({T4(kT4, 5, 0)});
  facts.mdev.parents = {ParentOf(kT4)};
  SECTION("a type that nobody has") {
    const Plan plan = PlanFor(facts, Wanting({{"GRID T4-1Q", 1}, {"GRID V100-1Q", 1}}));
    CHECK(Codes(plan.refusals) == "vfio-driver-missing 0000:3b:00.0");
    CHECK(plan.refusals[0].text ==
          "no parent has the type 'GRID V100-1Q'; 0000:3b:00.0 has: GRID T4-1Q, GRID T4-4Q");
    CHECK(GroupOf(plan, 5).actions.empty());
    CHECK(States(plan) == "refused ");
  }
  SECTION("a type that nobody has, of several parents") {
    const Plan plan = PlanFor(ThreeParents(), Wanting({{"GRID V100-1Q", 1}}));
    CHECK(Codes(plan.refusals) ==
          "vfio-driver-missing 0000:3b:00.0\nvfio-driver-missing 0000:5e:00.0\n"
          "vfio-driver-missing 0000:af:00.0");
  }
  SECTION("a driver that makes none") {
    facts.mdev.parents.clear();
    const Plan plan = PlanFor(facts, Wanting({{"GRID T4-1Q", 1}}));
    CHECK(Codes(plan.refusals) == "vfio-driver-missing 0000:3b:00.0");
    CHECK(GroupOf(plan, 5).verdict == Verdict::kRefused);
  }
  SECTION("two types of one name") {
    facts.mdev.parents[0].types[1].name = "GRID T4/1Q";
    facts.mdev.parents[0].types[0].name = "GRID T4 1Q";
    const Plan plan = PlanFor(facts, Wanting({{"nvidia-222", 1}, {"nvidia-225", 1}}));
    CHECK(Codes(plan.refusals) == "name-collision 0000:3b:00.0");
  }
  SECTION("a name that the kubelet does not take") {
    facts.mdev.parents[0].types[0].name = "???";
    CHECK(Codes(PlanFor(facts, Wanting({{"nvidia-222", 1}})).refusals) ==
          "name-invalid 0000:3b:00.0");
  }
}

TEST_CASE("VGPU: names of types keep case and hyphens, as NVIDIA's plugin has them", "[mdev]") {
  CHECK(MdevTypeResourceName("GRID T4-1Q") == "GRID_T4-1Q");
  CHECK(MdevTypeResourceName("NVIDIA  A100-4C") == "NVIDIA_A100-4C");
  CHECK(MdevTypeResourceName(" (x)/y. ") == "x_y");
  CHECK(MdevTypeResourceName(std::string(80, 'a')).size() == 63);
  CHECK(MdevVariable(kQ1) == "MDEV_PCI_RESOURCE_NVIDIA_COM_GRID_T4-1Q");
}

TEST_CASE("VGPU: release removes what is ours and free, and leaves what others made", "[mdev]") {
  NodeFacts facts = Node({T4(kT4, 5, 0)});
  facts.mdev.parents = {ParentOf(kT4)};
  const std::string ours = MdevUuid(At(kT4), "nvidia-222", 0);
  AddInstance(facts, kForeign, kT4, 40);
  AddInstance(facts, ours, kT4, 41);
  CHECK(ParentsOfOwnMdevs(facts) == std::vector<PciAddress>{At(kT4)});
  Custody custody = Asked();
  const auto release = [&] { return PlanMdevRelease(facts, custody, {kForeign, ours}); };
  REQUIRE(release().size() == 1);
  CHECK(release()[0].group == 41);
  CHECK(Shell(release()[0].actions) == "echo 1 > /sys/bus/mdev/devices/" + ours + "/remove");
  CHECK(PlanMdevRelease(facts, custody, {kForeign}).empty());
  SECTION("a process has it") {
    custody.inquiry->use.groups[41] = {{.pid = 4242, .command = "qemu-kvm"}};
  }
  SECTION("a pod has it") {
    custody.inquiry->claims.list = {{.pod = "vm", .resource = kQ1, .unit = ours}};
  }
  SECTION("it was just given") {
    custody.tenancy = Tenancy{};
    custody.tenancy->grants = {{.resource = kQ1, .unit = ours, .group = 41}};
  }
  REQUIRE(release()[0].refusals.size() == 1);
  CHECK(release()[0].refusals[0].code == Code::kHeld);
  CHECK(release()[0].actions.empty());
}

}  // namespace
}  // namespace vfio_agent
