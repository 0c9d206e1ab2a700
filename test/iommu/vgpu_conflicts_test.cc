// vGPUs beside whole devices and virtual functions, and entries that do not fit the node.
#include <catch2/catch.hpp>

#include "test/iommu/vgpu_nodes.h"

namespace vfio_agent {
namespace {

// All virtual functions of `physfn`'s card to vfio-pci.
ResourceRule SriovOf(std::string_view physfn) {
  ResourceRule rule;
  rule.name = "nvidia.com/VF";
  rule.select = {{.address = At(physfn)}};
  rule.sriov = Sriov{};
  return rule;
}

TEST_CASE("VGPU: a vGPU is never bound to vfio-pci, whatever selects it", "[vgpu]") {
  NodeFacts facts = OneCard();
  SetType(facts, kA4, 1145);
  Policy policy = DefaultPolicy();
  SECTION("by its address") { policy.resources[0].select = {{.address = At(kA4)}}; }
  SECTION("by its physical function") { policy.resources = {SriovOf(kCardA)}; }
  SECTION("with a type that cannot be read") {
    policy.resources = {SriovOf(kCardA)};
    facts.vgpu.functions[0].current = Fact<int>::Unknown(5);
  }
  SECTION("and with a cdev as a vfio driver's") {
    policy.resources = {SriovOf(kCardA)};
    Find(facts, kA4).vfio_cdev = "vfio0";
  }
  const Plan plan = PlanFor(facts, policy);
  CHECK(GroupOf(plan, 20).actions.empty());
  CHECK(GroupOf(plan, 20).verdict == Verdict::kRefused);
  CHECK_THAT(Codes(GroupOf(plan, 20).refusals), Catch::Contains("foreign-manager 0000:41:00.4"));
}

TEST_CASE("VGPU: functions without a type go to vfio-pci as ever, where vgpu is not set",
          "[vgpu]") {
  Policy policy = DefaultPolicy();
  policy.resources = {SriovOf(kCardA)};
  CHECK(GroupOf(PlanFor(OneCard(), policy), 20).verdict == Verdict::kBind);
}

TEST_CASE("VGPU: sriov and vgpu on one card are refused both", "[vgpu]") {
  Policy policy = WantingVgpus({{"1145", 1}});
  policy.resources = {SriovOf(kCardA)};
  const Plan plan = PlanFor(OneCard(), policy);
  CHECK(Codes(plan.refusals) == "foreign-manager 0000:41:00.0");
  CHECK(plan.resources.empty());
  for (const GroupPlan& group : plan.groups) CHECK(group.actions.empty());
  policy.resources[0].exclude = {{.address = At(kCardA)}};
  CHECK(States(PlanFor(OneCard(), policy)) == "to-bind ");
}

TEST_CASE("VGPU: a function that resources name by its address is refused there", "[vgpu]") {
  Policy policy = WantingVgpus({{"1145", 3}});
  policy.resources[0].select = {{.address = At(kA4)}};
  const Plan plan = PlanFor(OneCard(), policy);
  CHECK_THAT(Codes(GroupOf(plan, 20).refusals), Catch::Contains("foreign-manager 0000:41:00.4"));
  CHECK(Written(plan) == "0000:41:00.5=1145 0000:41:00.6=1145 ");
}

TEST_CASE("VGPU: a card without such functions is told what to switch on", "[vgpu]") {
  NodeFacts facts = Node({L40s(kCardA, 5)});
  const Plan plan = PlanFor(facts, WantingVgpus({{"1145", 1}}));
  REQUIRE(Codes(plan.refusals) == "vfio-driver-missing 0000:41:00.0");
  CHECK_THAT(plan.refusals[0].text, Catch::Contains("it has none at all"));
  CHECK_THAT(plan.refusals[0].remedy, Catch::Contains("sriov-manage -e 0000:41:00.0"));
  CHECK(GroupOf(plan, 5).verdict == Verdict::kRefused);
  CHECK(GroupOf(plan, 5).actions.empty());
}

TEST_CASE("VGPU: a card of vgpu is not given whole, beside one that is", "[vgpu]") {
  NodeFacts facts = TwoCards();
  Policy policy = WantingVgpus({{"1145", 0}});
  policy.vgpu[0].parents = {{.address = At(kCardA)}};
  std::erase_if(facts.devices, [](const PciDevice& d) { return d.address == At(kB4); });
  facts.vgpu.functions.pop_back();
  Find(facts, kCardB).virtfns.clear();
  const Plan plan = PlanFor(facts, policy);
  CHECK(GroupOf(plan, 5).actions.empty());
  CHECK(GroupOf(plan, 6).verdict == Verdict::kBind);
}

TEST_CASE("VGPU: names that nobody could tell apart, or the kubelet not take, are refused",
          "[vgpu]") {
  NodeFacts facts = OneCard();
  Policy policy = WantingVgpus({{"1145", 1}, {"1153", 1}});
  const auto codes = [&] { return Codes(PlanFor(facts, policy).refusals); };
  SECTION("two types of one name") {
    policy.vgpu[0].names = {{1145, "A B"}, {1153, "A_B"}};
    CHECK(codes() == "name-collision 0000:41:00.0");
  }
  SECTION("one type twice") {
    policy.vgpu[0].types = {{"1145", 1}, {"NVIDIA L40S-1B", 1}};
    CHECK(codes() == "name-collision 0000:41:00.0");
  }
  SECTION("a name of nothing") {
    policy.vgpu[0].names = {{1145, "???"}};
    CHECK(codes() == "name-invalid 0000:41:00.0");
  }
  SECTION("a type that no function can be") {
    policy.vgpu[0].types = {{"NVIDIA A16-1B", 1}};
    CHECK(codes() == "vfio-driver-missing 0000:41:00.0");
    CHECK_THAT(PlanFor(facts, policy).refusals[0].text,
               Catch::EndsWith("has room for: NVIDIA L40S-1B, NVIDIA L40S-48Q"));
  }
}

Custody BesideManager(const std::string& pod = "ops/nvidia-vgpu-device-manager-zx4t8") {
  Custody custody = Asked();
  custody.tenancy.emplace();
  custody.tenancy->claims.rivals = {pod};
  return custody;
}

TEST_CASE("VGPU: beside another manager of vGPUs no type is set, and what is there stays served",
          "[vgpu]") {
  NodeFacts facts = OneCard();
  Policy policy = WantingVgpus({{"1145", 2}});
  const auto make = [&] { return PlanFor(facts, policy, BesideManager()); };
  CHECK(Written(make()).empty());
  CHECK(States(make()) == "refused refused ");
  CHECK(Codes(make().refusals) == "foreign-manager 0000:41:00.4\nforeign-manager 0000:41:00.5");
  CHECK_THAT(make().refusals[0].text, Catch::Contains("0000:41:00.0") &&
                                          Catch::Contains("nvidia-vgpu-device-manager-zx4t8"));
  CHECK(make().warnings.empty());
  SECTION("with a warning where some are there") {
    SetType(facts, kA4, 1145);
    policy.vgpu[0].types[0].count = 1;
    CHECK(make().refusals.empty());
    CHECK(States(make()) == "ready ");
    CHECK(Codes(make().warnings) == "foreign-manager 0000:41:00.0");
  }
  SECTION("unless an operator overrules it for the card") {
    policy.guard_override = {At(kCardA)};
    CHECK(make().refusals.empty());
    CHECK(Written(make()) == "0000:41:00.4=1145 0000:41:00.5=1145 ");
    CHECK_THAT(make().warnings.at(0).text, Catch::EndsWith("overruled by guard.override"));
  }
}

TEST_CASE("VGPU: a manager of vGPUs alone hinders no bind of a whole card", "[vgpu]") {
  const NodeFacts facts = Node({L40s(kCardA, 5)});
  const Plan plan = PlanFor(facts, DefaultPolicy(), BesideManager());
  CHECK(GroupOf(plan, 5).verdict == Verdict::kBind);
  CHECK(plan.warnings.empty());
}

TEST_CASE("VGPU: vGPUs of one type are served in one way, by the entry that comes first",
          "[vgpu]") {
  const NodeFacts facts = TwoCards();
  Policy policy = WantingVgpus({{"1145", 1}});
  policy.vgpu[0].parents = {{.address = At(kCardA)}};
  policy.vgpu[0].serve = Serve::kDra;
  policy.vgpu.push_back(policy.vgpu[0]);
  policy.vgpu[1].parents = {{.address = At(kCardB)}};
  const Plan agreed = PlanFor(facts, policy);
  REQUIRE(agreed.resources.size() == 1);
  CHECK(agreed.resources[0].serve == Serve::kDra);
  CHECK(agreed.resources[0].units.size() == 2);
  CHECK(agreed.resources[0].units[0].type_name == "NVIDIA L40S-1B");
  policy.vgpu[1].serve = Serve::kDevicePlugin;
  const Plan both = PlanFor(facts, policy);
  CHECK(Codes(both.refusals) == "name-collision 0000:c1:00.0");
  REQUIRE(both.resources.size() == 1);
  CHECK(both.resources[0].units.size() == 1);
}

TEST_CASE("VGPU: a function without a group can be given to nobody", "[vgpu]") {
  NodeFacts facts = OneCard();
  SetType(facts, kA4, 1145);
  Find(facts, kA4).group.reset();
  Find(facts, kA5).group.reset();
  const Plan plan = PlanFor(facts, WantingVgpus({{"1145", 2}}));
  CHECK(States(plan) == "refused to-bind ");
  CHECK(Written(plan) == "0000:41:00.6=1145 ");
}

TEST_CASE("VGPU: only a controller is a card, and what is beside it stays with it", "[vgpu]") {
  NodeFacts facts =
      Node({L40s(kCardA, 5), Function("0000:41:00.1", 7, "snd_hda_intel", "10de:22ba", 0x040300),
            Function("0000:05:00.0", 8, "vfio-pci", "10de:22a3", 0x068000)});
  Policy policy = WantingVgpus({{"1145", 1}});
  policy.resources[0].select = {{.vendor = uint16_t{0x10de}}};
  const Plan plan = PlanFor(facts, policy);
  REQUIRE(GroupOf(plan, 5).refusals.size() == 1);
  CHECK_THAT(GroupOf(plan, 5).refusals[0].text,
             Catch::StartsWith("vgpu[0].parent selects 0000:41:00.0 (10de:26b9, driver nvidia)"));
  CHECK_THAT(GroupOf(plan, 5).refusals[0].remedy, Catch::Contains("narrow vgpu[0].parent"));
  CHECK(GroupOf(plan, 7).refusals.empty());
  CHECK(GroupOf(plan, 7).verdict == Verdict::kUnselected);
  CHECK(GroupOf(plan, 8).verdict != Verdict::kUnselected);
  CHECK(ParentEntry(policy, Find(facts, "0000:41:00.1")) == "vgpu[0].parent");
  CHECK(ParentEntry(policy, Find(facts, "0000:05:00.0")).empty());
}

}  // namespace
}  // namespace vfio_agent
