// vGPU types that the configuration asks for no more.
#include <catch2/catch.hpp>

#include "test/iommu/vgpu_nodes.h"

namespace vfio_agent {
namespace {

const std::vector<std::string> kAll = {kA4, kA5, kA6};

// A card of which all three functions have a type; it lists nothing more.
NodeFacts FullCard(int type = 1145) {
  NodeFacts facts = OneCard();
  for (const std::string& vf : kAll) SetType(facts, vf, type);
  Fill(facts);
  return facts;
}

void HoldByPod(Custody& custody, const char* vf) {
  custody.inquiry->claims.list.push_back(
      {.pod = "vm", .container = "compute", .resource = kOneB, .unit = vf});
  custody.tenancy.emplace();
  custody.tenancy->claims = custody.inquiry->claims;
}

TEST_CASE("VGPU: a lower count takes the types of ours away, from the highest address", "[vgpu]") {
  const NodeFacts facts = FullCard();
  const Plan plan = PlanFor(facts, WantingVgpus({{"1145", 1}}), Asked(Given(kAll)));
  CHECK(Written(plan) == "0000:41:00.5=0 0000:41:00.6=0 ");
  CHECK(States(plan) == "ready ");
  const GroupPlan& group = GroupOf(plan, 22);
  CHECK(group.verdict == Verdict::kBind);
  CHECK(group.resource == kOneB);
  CHECK(TakesVgpuAway(group));
  CHECK(Shell(group.actions) ==
        "echo 0 > /sys/bus/pci/devices/0000:41:00.6/nvidia/current_vgpu_type");
  CHECK(plan.question.groups == std::vector<int>{20, 21, 22});
  CHECK(plan.refusals.empty());
  CHECK(plan.warnings.empty());
  CHECK(Written(PlanFor(facts, WantingVgpus({{"1145", 3}}), Asked(Given(kAll)))).empty());
}

TEST_CASE("VGPU: what others have set counts, and is never taken away", "[vgpu]") {
  const NodeFacts facts = FullCard();
  CHECK(Written(PlanFor(facts, WantingVgpus({{"1145", 0}}))).empty());
  CHECK(Written(PlanFor(facts, WantingVgpus({{"1145", 1}}), Asked(Given({kA4})))) ==
        "0000:41:00.4=0 ");
  // The record is of another type than what is there now.
  CHECK(Written(PlanFor(facts, WantingVgpus({{"1145", 0}}), Asked(Given(kAll, 1153)))).empty());
  // Its write had not begun, or was of another boot.
  const Records noted = Given(kAll, 1145, kStepNoted);
  CHECK(Written(PlanFor(facts, WantingVgpus({{"1145", 0}}), Asked(noted))).empty());
}

TEST_CASE("VGPU: one too many that somebody has stays, is named, and is given to nobody else",
          "[vgpu]") {
  const NodeFacts facts = FullCard();
  Custody custody = Asked(Given(kAll));
  HoldByPod(custody, kA6);
  SECTION("the idle ones go first") {
    const Plan plan = PlanFor(facts, WantingVgpus({{"1145", 1}}), custody);
    CHECK(Written(plan) == "0000:41:00.4=0 0000:41:00.5=0 ");
    CHECK(States(plan) == "held ");
    CHECK(plan.warnings.empty());
  }
  SECTION("a count that only the end of a use can reach") {
    const Plan plan = PlanFor(facts, WantingVgpus({{"1145", 0}}), custody);
    CHECK(Written(plan) == "0000:41:00.4=0 0000:41:00.5=0 ");
    CHECK(States(plan) == "withheld ");
    CHECK(plan.resources.at(0).units.at(0).kept);
    REQUIRE(Codes(plan.warnings) == "held 0000:41:00.6");
    CHECK_THAT(plan.warnings[0].text, Catch::Contains("is in use by pod") &&
                                          Catch::Contains("more than vgpu[].types asks for"));
    CHECK(GroupOf(plan, 22).actions.empty());
  }
  SECTION("a process has it") {
    custody = Asked(Given(kAll));
    custody.inquiry->use.groups[22] = {{.pid = 4242, .command = "qemu-kvm"}};
    const Plan plan = PlanFor(facts, WantingVgpus({{"1145", 0}}), custody);
    CHECK(Written(plan) == "0000:41:00.4=0 0000:41:00.5=0 ");
    CHECK_THAT(plan.warnings.at(0).text, Catch::Contains("pid 4242 (qemu-kvm)"));
  }
  SECTION("it was just given to a pod") {
    custody = Asked(Given(kAll));
    custody.tenancy.emplace();
    custody.tenancy->grants = {{.resource = kOneB, .unit = kA6, .group = 22}};
    CHECK(Written(PlanFor(facts, WantingVgpus({{"1145", 0}}), custody)) ==
          "0000:41:00.4=0 0000:41:00.5=0 ");
  }
  SECTION("the kubelet does not tell who has what") {
    custody.inquiry->claims = {.known = false, .why_unknown = "it does not answer"};
    CHECK(Written(PlanFor(facts, WantingVgpus({{"1145", 0}}), custody)).empty());
  }
}

TEST_CASE("VGPU: what is going already counts as gone", "[vgpu]") {
  Custody custody = Asked(Given(kAll));
  SECTION("a child of ours") { custody.underway.at_work = {20}; }
  SECTION("another process") { custody.underway.elsewhere = {20}; }
  SECTION("a write that does not return") {
    custody.underway.stuck[20] = {.device = At(kA4), .command = "echo 0 > x"};
  }
  const Plan plan = PlanFor(FullCard(), WantingVgpus({{"1145", 1}}), custody);
  CHECK(GroupOf(plan, 21).verdict == Verdict::kBound);
  CHECK(GroupOf(plan, 22).verdict == Verdict::kBind);
  CHECK(States(plan) == "ready ");
  CHECK(GroupOf(plan, 20).refusals.empty() == !custody.underway.at_work.empty());
}

TEST_CASE("VGPU: another type for a full card waits until the old ones are taken away", "[vgpu]") {
  const Policy policy = WantingVgpus({{"NVIDIA L40S-48Q", 1}});
  Custody custody = Asked(Given(kAll));
  const Plan plan = PlanFor(FullCard(), policy, custody);
  CHECK(Written(plan) == "0000:41:00.4=0 0000:41:00.5=0 0000:41:00.6=0 ");
  CHECK(plan.refusals.empty());
  CHECK(Codes(plan.warnings) == "probe-refused 0000:41:00.0");
  // Cut off there: the functions are empty, and the journal has records of the way back.
  for (auto& [address, record] : custody.records) record.releasing = true;
  const Plan next = PlanFor(OneCard(), policy, custody);
  CHECK(Written(next) == "0000:41:00.4=1153 ");
  CHECK(next.refusals.empty());
}

TEST_CASE("VGPU: who keeps a card from another type is said, and what fills it", "[vgpu]") {
  const Policy policy = WantingVgpus({{"NVIDIA L40S-48Q", 1}});
  NodeFacts facts = OneCard();
  SetType(facts, kA4, 1145);
  SetType(facts, kA5, 1145);
  Fill(facts);
  Custody custody = Asked(Given({kA4, kA5}));
  SECTION("guests have all") {
    HoldByPod(custody, kA4);
    HoldByPod(custody, kA5);
    const Plan plan = PlanFor(facts, policy, custody);
    CHECK(Written(plan).empty());
    REQUIRE(Codes(plan.refusals) == "held 0000:41:00.0");
    CHECK_THAT(plan.refusals[0].text,
               Catch::Contains("has room for: nothing; it has 2 of NVIDIA L40S-1B (1145); "
                               "0000:41:00.4 is in use by pod"));
    CHECK_THAT(plan.refusals[0].remedy, Catch::StartsWith("stop those guests"));
  }
  SECTION("others have set them") {
    const Plan plan = PlanFor(facts, policy);
    REQUIRE(Codes(plan.refusals) == "probe-refused 0000:41:00.0");
    CHECK_THAT(plan.refusals[0].text, Catch::Contains("it has 2 of 1145 (2 set by others)"));
    CHECK_THAT(plan.refusals[0].remedy, Catch::Contains("echo 0 > /sys/bus/pci/devices/0000:41"));
  }
  SECTION("a known name") {
    HoldByPod(custody, kA4);
    HoldByPod(custody, kA5);
    Policy named = policy;
    named.vgpu[0].names = {{1153, "NVIDIA L40S-48Q"}};
    const Plan plan = PlanFor(facts, named, custody);
    CHECK_THAT(Codes(plan.warnings), Catch::Contains("held 0000:41:00.0"));
    CHECK(plan.refusals.empty());
  }
}

TEST_CASE("VGPU: dealt out over cards, types go from where there are most", "[vgpu]") {
  NodeFacts facts = TwoCards();
  for (const char* vf : {kA4, kA5, kB4}) SetType(facts, vf, 1145);
  const Records records = Given({kA4, kA5, kB4});
  const auto written = [&](int count, MdevSpread spread) {
    return Written(PlanFor(facts, WantingVgpus({{"1145", count}}, spread), Asked(records)));
  };
  CHECK(written(2, MdevSpread::kRoundRobin) == "0000:41:00.5=0 ");
  CHECK(written(2, MdevSpread::kNuma) == "0000:41:00.5=0 ");
  CHECK(written(3, MdevSpread::kNuma).empty());
  CHECK(written(1, MdevSpread::kEach) == "0000:41:00.5=0 ");
}

TEST_CASE("VGPU: beside another manager of vGPUs no type is taken away", "[vgpu]") {
  Custody custody = Asked(Given(kAll));
  custody.tenancy.emplace();
  custody.tenancy->claims.rivals = {"ops/nvidia-vgpu-device-manager-zx4t8"};
  const Plan plan = PlanFor(FullCard(), WantingVgpus({{"1145", 1}}), custody);
  CHECK(Written(plan).empty());
  CHECK(States(plan) == "ready ready ready ");
}

TEST_CASE("VGPU: where the entry is gone types stay until release, which is said", "[vgpu]") {
  Policy policy = DefaultPolicy();
  policy.resources.clear();
  const Plan plan = PlanFor(FullCard(), policy, Asked(Given({kA5})));
  CHECK(Written(plan).empty());
  CHECK(plan.resources.empty());
  REQUIRE(Codes(plan.warnings) == "excluded 0000:41:00.5");
  CHECK_THAT(plan.warnings[0].text, Catch::Contains("until it is released"));
  CHECK(plan.warnings[0].remedy == "vfio-agent release 0000:41:00.5, once no guest has it");
  CHECK(GroupOf(plan, 21).warnings == plan.warnings);
}

}  // namespace
}  // namespace vfio_agent
