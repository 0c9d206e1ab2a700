#include <catch2/catch.hpp>

#include "test/iommu/vgpu_nodes.h"

namespace vfio_agent {
namespace {

TEST_CASE("VGPU: a virtual function keeps its driver and gets its type by a write", "[vgpu]") {
  const NodeFacts facts = OneCard();
  const Plan plan = PlanFor(facts, WantingVgpus({{"NVIDIA L40S-1B", 1}}));
  const GroupPlan& group = GroupOf(plan, 20);
  CHECK(group.verdict == Verdict::kBind);
  CHECK(group.resource == kOneB);
  CHECK(group.vgpu_type == "1145");
  CHECK(Roles(group) == "0000:41:00.4 primary keep");
  CHECK(Shell(group.actions) ==
        "echo 1145 > /sys/bus/pci/devices/0000:41:00.4/nvidia/current_vgpu_type\n"
        "ls -l /dev/vfio/20");
  CHECK(States(plan) == "to-bind ");
  CHECK(Named(plan, kOneB)->units[0].id == kA4);
  CHECK(Named(plan, kOneB)->units[0].addresses == std::vector<PciAddress>{At(kA4)});
  CHECK(Roles(GroupOf(plan, 5)) == "0000:41:00.0 physical keep");
  CHECK(GroupOf(plan, 5).verdict == Verdict::kUnselected);
  CHECK(plan.question.groups == std::vector<int>{20});
  CHECK(plan.refusals.empty());
  CHECK(PlanFor(facts, WantingVgpus({{"1145", 1}})).groups == plan.groups);
}

TEST_CASE("VGPU: without vgpu in the configuration nothing of them is touched", "[vgpu]") {
  NodeFacts facts = OneCard();
  SetType(facts, kA4, 1145);
  Policy policy = DefaultPolicy();
  policy.resources.clear();
  const Plan plan = PlanFor(facts, policy);
  CHECK(plan.resources.empty());
  CHECK(GroupOf(plan, 20).verdict == Verdict::kUnselected);
}

TEST_CASE("VGPU: what has the type counts, whoever gave it, and is offered", "[vgpu]") {
  NodeFacts facts = OneCard();
  SetType(facts, kA5, 1145);
  const Plan plan = PlanFor(facts, WantingVgpus({{"NVIDIA L40S-1B", 2}}));
  CHECK(Written(plan) == "0000:41:00.4=1145 ");
  CHECK(States(plan) == "to-bind ready ");
  CHECK(GroupOf(plan, 21).verdict == Verdict::kBound);
  CHECK(GroupOf(plan, 21).actions.empty());
  const Plan none = PlanFor(facts, WantingVgpus({{"NVIDIA L40S-1B", 0}}));
  CHECK(Written(none).empty());
  CHECK(States(none) == "ready ");
  CHECK(none.question.empty());
}

TEST_CASE("VGPU: vGPUs are counted for each card, or dealt out by card or by NUMA node", "[vgpu]") {
  const NodeFacts facts = TwoCards();
  const auto written = [&](int count, MdevSpread spread) {
    return Written(PlanFor(facts, WantingVgpus({{"1145", count}}, spread)));
  };
  CHECK(written(1, MdevSpread::kEach) == "0000:41:00.4=1145 0000:c1:00.4=1145 ");
  CHECK(written(2, MdevSpread::kRoundRobin) == "0000:41:00.4=1145 0000:c1:00.4=1145 ");
  CHECK(written(3, MdevSpread::kNuma) == "0000:41:00.4=1145 0000:41:00.5=1145 0000:c1:00.4=1145 ");
}

TEST_CASE("VGPU: a count beyond the card is a warning, and not a write", "[vgpu]") {
  NodeFacts facts = OneCard();
  const Plan plan = PlanFor(facts, WantingVgpus({{"1145", 4}}));
  REQUIRE(plan.warnings.size() == 1);
  CHECK(plan.warnings[0].text ==
        "1 more of the vGPU type NVIDIA L40S-1B (1145) are wanted than 0000:41:00.0 has virtual "
        "functions or memory for");
  SetType(facts, kA4, 1145);
  Fill(facts);
  const Plan full = PlanFor(facts, WantingVgpus({{"1145", 4}}), Asked(Given({kA4})));
  CHECK(Written(full).empty());
  CHECK(States(full) == "ready ");
  CHECK(full.warnings.size() == 1);
}

TEST_CASE("VGPU: a full card's types are known by journal or configuration", "[vgpu]") {
  NodeFacts facts = OneCard();
  SetType(facts, kA4, 1145);
  Fill(facts);
  Policy policy = WantingVgpus({{"NVIDIA L40S-1B", 1}});
  const Plan unknown = PlanFor(facts, policy);
  CHECK(unknown.resources.empty());
  CHECK(Codes(unknown.refusals) == "probe-refused 0000:41:00.0");
  CHECK_THAT(unknown.warnings.at(0).text, Catch::Contains("nor is its name known"));
  CHECK(States(PlanFor(facts, policy, Asked(Given({kA4})))) == "ready ");
  policy.vgpu[0].names = {{1145, "NVIDIA L40S-1B"}};
  CHECK(States(PlanFor(facts, policy)) == "ready ");
  policy.vgpu[0].names = {{1145, "Small"}};  // stays the same, whatever the driver lists
  policy.vgpu[0].types = {{"1145", 1}};
  CHECK(States(PlanFor(facts, policy), "nvidia.com/Small") == "ready ");
}

TEST_CASE("VGPU: two types share a card one after the other, in the order of the configuration",
          "[vgpu]") {
  const Policy policy = WantingVgpus({{"NVIDIA L40S-1B", 2}, {"NVIDIA L40S-48Q", 1}});
  NodeFacts facts = OneCard();
  const Plan first = PlanFor(facts, policy);
  CHECK(Written(first) == "0000:41:00.4=1145 0000:41:00.5=1145 ");
  CHECK(States(first, "nvidia.com/NVIDIA_L40S-48Q") == "none");
  REQUIRE(first.warnings.size() == 1);
  CHECK_THAT(first.warnings[0].text,
             Catch::Contains("1 more of the vGPU type NVIDIA L40S-48Q (1153) wait until") &&
                 Catch::Contains("NVIDIA L40S-1B (1145)"));
  SetType(facts, kA4, 1145);
  SetType(facts, kA5, 1145);
  const Plan next = PlanFor(facts, policy);
  CHECK(Written(next) == "0000:41:00.6=1153 ");
  CHECK(States(next, "nvidia.com/NVIDIA_L40S-48Q") == "to-bind ");
  CHECK(next.warnings.empty());
}

TEST_CASE("VGPU: dealt out over cards, a type goes where the plan gives no other", "[vgpu]") {
  const Policy policy = WantingVgpus({{"1153", 1}, {"1145", 2}}, MdevSpread::kRoundRobin);
  const Plan plan = PlanFor(TwoCards(), policy);
  CHECK(Written(plan) == "0000:41:00.4=1153 0000:c1:00.4=1145 ");
  CHECK(plan.warnings.size() == 1);
}

TEST_CASE("VGPU: a type of a known name that no card has room for is a shortage, not unknown",
          "[vgpu]") {
  NodeFacts facts = OneCard();
  for (VgpuFunction& function : facts.vgpu.functions) function.creatable = {kTypes[0]};
  Policy policy = WantingVgpus({{"1153", 1}});
  policy.vgpu[0].names = {{1153, "NVIDIA L40S-48Q"}};
  const Plan plan = PlanFor(facts, policy);
  CHECK(plan.refusals.empty());
  REQUIRE(plan.warnings.size() == 1);
  CHECK_THAT(plan.warnings[0].text, Catch::Contains("1 more of the vGPU type NVIDIA L40S-48Q"));
  policy.vgpu[0].types = {{"1153", 0}};
  CHECK(PlanFor(facts, policy).warnings.empty());
}

TEST_CASE("VGPU: a function that was ours gets its type back before any other", "[vgpu]") {
  const Plan plan = PlanFor(OneCard(), WantingVgpus({{"1145", 1}}), Asked(Given({kA6})));
  CHECK(Written(plan) == "0000:41:00.6=1145 ");
  CHECK(States(plan) == "unhealthy ");
  CHECK(Named(plan, kOneB)->units[0].reason ==
        "driver-changed: its vGPU type is gone, and is set again");
}

TEST_CASE("VGPU: what somebody uses, or a write has not left, is not written to", "[vgpu]") {
  const NodeFacts facts = OneCard();
  Custody custody = Asked(Given({kA4}));
  const auto refused = [&](const char* code) {
    const Plan plan = PlanFor(facts, WantingVgpus({{"1145", 1}}), custody);
    CHECK(Written(plan).empty());
    CHECK(Codes(GroupOf(plan, 20).refusals) == std::string(code) + " 0000:41:00.4");
    CHECK(States(plan) == "refused ");
    return plan;
  };
  SECTION("a process has its group open") {
    custody.inquiry->use.groups[20] = {{.pid = 4242, .command = "qemu-kvm"}};
    refused("held");
  }
  SECTION("a pod has it") {
    custody.inquiry->claims.list = {{.pod = "vm", .resource = kOneB, .unit = kA4}};
    refused("held");
  }
  SECTION("a write has not returned") {
    custody.underway.stuck[20] = {.device = At(kA4), .command = "echo 1145 > x"};
    CHECK(refused("unbind-stuck").question.empty());
  }
  SECTION("another process is at work on it") {
    custody.underway.elsewhere = {20};
    refused("foreign-manager");
  }
}

TEST_CASE("VGPU: what keeps a vGPU from guests is said", "[vgpu]") {
  NodeFacts facts = OneCard();
  SetType(facts, kA4, 1145);
  Custody custody = Asked();
  custody.tenancy = Tenancy{};
  const auto unit = [&] {
    return Named(PlanFor(facts, WantingVgpus({{"1145", 1}}), custody), kOneB)->units.at(0);
  };
  REQUIRE(unit().state == UnitState::kReady);
  SECTION("a pod has it") {
    custody.tenancy->claims.list = {
        {.pod = "vm", .container = "compute", .resource = kOneB, .unit = kA4}};
    CHECK(unit().state == UnitState::kHeld);
    custody.tenancy->claims.list[0].resource = "nvidia.com/OTHER";
    CHECK(unit().state == UnitState::kRefused);
  }
  SECTION("a process has it without a pod") {
    custody.tenancy->open[20] = {{.pid = 4242, .command = "qemu-kvm"}};
    CHECK(unit().reason ==
          "in-use-holder: group 20 is open, and no pod has it: pid 4242 (qemu-kvm)");
  }
  SECTION("its node is missing") {
    facts.vfio_nodes.erase("20");
    CHECK(unit().reason == "node-missing: /dev/vfio/20 is not there");
  }
  SECTION("fatal errors were counted") {
    custody.fatal_before[At(kA4)] = 0;
    Find(facts, kA4).aer_fatal = Fact<uint64_t>(1);
    CHECK_THAT(unit().reason, Catch::StartsWith("aer-fatal"));
  }
  SECTION("somebody else is in its group") {
    Find(facts, kA5).group = 20;
    CHECK(unit().state == UnitState::kUnhealthy);
    CHECK_THAT(unit().reason, Catch::StartsWith("foreign-member: 0000:41:00.4"));
  }
  SECTION("somebody in its group could not be read") {
    facts.groups.at(20).listed = {At(kA4), At("0000:42:00.0")};
    CHECK_THAT(unit().reason, Catch::Contains("with 0000:42:00.0: a vGPU needs"));
  }
  SECTION("nothing isolates its group") {
    facts.groups.at(20).noiommu = true;
    CHECK_THAT(unit().reason, Catch::StartsWith("noiommu: "));
  }
  SECTION("the firmware has a region of its group") {
    facts.groups.at(20).direct_reserved = true;
    CHECK_THAT(unit().reason, Catch::StartsWith("rmrr-direct: "));
  }
  SECTION("its type cannot be read, and is known as ours") {
    facts.vgpu.functions[0].current = Fact<int>::Unknown(5);
    custody.records = Given({kA4});
    CHECK(
        unit().reason ==
        "driver-changed: the vGPU type of 0000:41:00.4 (10de:26b9, driver nvidia) cannot be read");
  }
}

TEST_CASE("VGPU: a guest that goes by cdevs needs no group's node", "[vgpu]") {
  NodeFacts facts = OneCard();
  SetType(facts, kA4, 1145);
  facts.vfio_nodes = {"devices/vfio0"};
  facts.iommu_node = true;
  Find(facts, kA4).vfio_cdev = "vfio0";
  Policy policy = WantingVgpus({{"1145", 1}});
  CHECK(States(PlanFor(facts, policy)) == "unhealthy ");
  policy.iommufd = true;
  CHECK(States(PlanFor(facts, policy)) == "ready ");
}

TEST_CASE("VGPU: a type of others that is not named is left, told, and offered to nobody",
          "[vgpu]") {
  NodeFacts facts = OneCard();
  SetType(facts, kA4, 1153);
  const Policy policy = WantingVgpus({{"1145", 0}});
  const Plan foreign = PlanFor(facts, policy);
  CHECK(Written(foreign).empty());
  CHECK(foreign.resources.empty());
  REQUIRE(Codes(foreign.warnings) == "excluded 0000:41:00.4");
  CHECK_THAT(foreign.warnings[0].remedy, Catch::Contains("echo 0 > /sys/"));
  facts.vgpu.functions[0].current = Fact<int>::Unknown(5);
  CHECK_THAT(PlanFor(facts, policy).warnings.at(0).text, Catch::Contains("cannot be read"));
}

}  // namespace
}  // namespace vfio_agent
