// Parents of mediated devices that have no group, or whose driver does not answer.
#include <catch2/catch.hpp>

#include "iommu/plan/job_key.h"
#include "test/iommu/mdev_nodes.h"

namespace vfio_agent {
namespace {

constexpr char kFile[] =
    "sys/bus/pci/devices/0000:3b:00.0/mdev_supported_types/nvidia-222/available_instances";

NodeFacts LoneParents() {
  NodeFacts facts = ThreeParents();
  for (PciDevice& device : facts.devices) device.group.reset();
  facts.groups.clear();
  return facts;
}

void Hang(NodeFacts& facts) {
  MdevParent& parent = facts.mdev.parents.front();
  parent.silent = kFile;
  for (MdevType& type : parent.types) type.available.reset();
}

const GroupPlan& PlanOfT4(const Plan& plan) {
  const auto found = std::ranges::find_if(
      plan.groups, [](const GroupPlan& group) { return group.members.front().address == At(kT4); });
  REQUIRE(found != plan.groups.end());
  return *found;
}

TEST_CASE("VGPU: a parent needs no IOMMU group: its instances have their own", "[mdev]") {
  NodeFacts facts = LoneParents();
  AddInstance(facts, MdevUuid(At(kT4), "nvidia-222", 0), kT4, 40);
  const Plan plan = PlanFor(facts, Wanting({{"GRID T4-1Q", 2}}));
  CHECK(plan.refusals.empty());
  CHECK(Created(plan) == "3b:1 5e:2 af:2 ");
  CHECK(States(plan) == "ready to-bind to-bind to-bind to-bind to-bind ");
  const GroupPlan& parent = PlanOfT4(plan);
  CHECK_FALSE(parent.group);
  CHECK(parent.makes_mdevs);
  CHECK(Roles(parent) == "0000:3b:00.0 primary keep");
  SECTION("an instance without a group is nobody's all the same") {
    facts.mdev.instances[0].group.reset();
    CHECK_THAT(States(PlanFor(facts, Wanting({{"GRID T4-1Q", 1}}))), Catch::StartsWith("refused "));
  }
}

TEST_CASE("VGPU: a parent without a group that resources[] selects is one line, not two",
          "[mdev]") {
  const Plan plan = PlanFor(LoneParents(), DefaultPolicy());
  std::set<PciAddress> seen;
  for (const GroupPlan& group : plan.groups) {
    for (const Member& member : group.members) CHECK(seen.insert(member.address).second);
  }
  CHECK(seen.size() == 3);
  CHECK(PlanOfT4(plan).verdict == Verdict::kRefused);
}

TEST_CASE("VGPU: jobs tell parents without a group apart, and spell them", "[mdev]") {
  const Plan plan = PlanFor(LoneParents(), Wanting({{"GRID T4-1Q", 1}}));
  std::set<int> keys;
  for (const GroupPlan& group : plan.groups) {
    const std::optional<int> key = JobKey(group);
    REQUIRE(key);
    CHECK(*key < -1);
    CHECK(ParentOfKey(*key) == group.members.front().address);
    keys.insert(*key);
  }
  CHECK(keys.size() == 3);
  CHECK(SpellJobKey(*JobKey(PlanOfT4(plan))) == "0000:3b:00.0 (no group)");
  CHECK(SpellJobKey(26) == "group 26");
  for (const int group : {-1, 0, 26}) CHECK_FALSE(ParentOfKey(group));
  GroupPlan last{.members = {{.address = At("7ffe:ff:1f.7")}}, .makes_mdevs = true};
  CHECK(ParentOfKey(*JobKey(last)) == At("7ffe:ff:1f.7"));
  last.makes_mdevs = false;
  CHECK_FALSE(JobKey(last));
}

TEST_CASE("VGPU: a parent without a group whose address does not fit is refused", "[mdev]") {
  NodeFacts facts = LoneParents();
  facts.devices = {facts.devices[0]};
  facts.devices[0].address = At("10000:3b:00.0");
  facts.mdev.parents = {ParentOf("10000:3b:00.0")};
  const Plan plan = PlanFor(facts, Wanting({{"GRID T4-1Q", 1}}));
  CHECK(Codes(plan.refusals) == "address-too-wide 10000:3b:00.0");
  CHECK(Created(plan).empty());
  CHECK(States(plan) == "refused ");
}

TEST_CASE("VGPU: of a card that does not answer all stays listed, and nothing is made", "[mdev]") {
  NodeFacts facts = ThreeParents();
  AddInstance(facts, MdevUuid(At(kT4), "nvidia-222", 0), kT4, 40);
  Hang(facts);
  Custody custody;
  custody.tenancy = Tenancy{};
  const auto plan = [&](MdevSpread spread) {
    return PlanFor(facts, Wanting({{"GRID T4-1Q", 2}}, spread), custody);
  };
  const Plan each = plan(MdevSpread::kEach);
  CHECK(Codes(each.refusals) == "unbind-stuck 0000:3b:00.0");
  CHECK_THAT(each.refusals[0].text, Catch::Contains(std::string("reading /") + kFile));
  CHECK_THAT(each.refusals[0].remedy, Catch::Contains("dmesg"));
  CHECK(each.warnings.empty());
  CHECK(Created(each) == "5e:2 af:2 ");
  CHECK(States(each) == "unhealthy to-bind to-bind to-bind to-bind ");
  CHECK_THAT(Named(each, kQ1)->units[0].reason, Catch::StartsWith("unbind-stuck: the driver of"));
  SECTION("what a pod has it keeps") {
    custody.tenancy->claims.list = {
        {.pod = "vm", .resource = kQ1, .unit = MdevUuid(At(kT4), "nvidia-222", 0)}};
    CHECK_THAT(States(plan(MdevSpread::kEach)), Catch::StartsWith("held "));
  }
  SECTION("a count for all parents is not dealt out to the others") {
    CHECK(Created(plan(MdevSpread::kRoundRobin)).empty());
    CHECK(States(plan(MdevSpread::kRoundRobin)) == "unhealthy ");
  }
}

TEST_CASE("VGPU: a type is not called unknown where a card does not tell its types", "[mdev]") {
  NodeFacts facts = ThreeParents();
  Hang(facts);
  for (MdevParent& parent : facts.mdev.parents) parent.types.clear();
  CHECK(Codes(PlanFor(facts, Wanting({{"GRID T4-1Q", 1}})).refusals) ==
        "unbind-stuck 0000:3b:00.0");
}

TEST_CASE("VGPU: each card that makes none is refused by the entry that selects it", "[mdev]") {
  NodeFacts facts = Node({T4(kT4, 5, 0), T4(kT4b, 6, 0), Audio("0000:5e:00.1", 6), T4(kT4c, 7, 1)});
  facts.mdev.parents = {ParentOf(kT4)};
  for (PciDevice& device : facts.devices) device.vendor = 0x10de;
  Policy policy = Wanting({{"GRID T4-1Q", 2}});
  policy.resources[0].select = {{.address = At(kT4c)}};
  const Plan plan = PlanFor(facts, policy);
  CHECK(Created(plan) == "3b:2 ");
  CHECK(Codes(plan.refusals) ==
        "vfio-driver-missing 0000:5e:00.0\nvfio-driver-missing 0000:af:00.0");
  CHECK(plan.refusals.at(1).text ==
        "mdev[0].parent selects 0000:af:00.0 (10de:1eb8, driver nvidia), which makes no mediated "
        "devices: its driver shows no mdev_supported_types");
  CHECK(GroupOf(plan, 6).verdict == Verdict::kRefused);
  CHECK(GroupOf(plan, 7).verdict == Verdict::kRefused);
}

TEST_CASE("VGPU: of a card whose virtual functions are the parents nothing else is asked",
          "[mdev]") {
  NodeFacts facts = Node({T4(kT4, 5, 0), T4("0000:3b:00.4", 6, 0), T4("0000:3b:00.5", 7, 0)});
  Find(facts, kT4).sriov_total_vfs = Fact<int>(16);
  for (const char* vf : {"0000:3b:00.4", "0000:3b:00.5"}) Find(facts, vf).physfn = At(kT4);
  facts.mdev.parents = {ParentOf("0000:3b:00.4")};
  CHECK(PlanFor(facts, Wanting({{"GRID T4-1Q", 1}})).refusals.empty());
  facts.mdev.parents.clear();
  const Plan none = PlanFor(facts, Wanting({{"GRID T4-1Q", 1}}));
  CHECK(Codes(none.refusals) == "vfio-driver-missing 0000:3b:00.0");
  CHECK_THAT(none.refusals.at(0).remedy, Catch::Contains("sriov-manage -e 0000:3b:00.0"));
}

TEST_CASE("VGPU: a card that makes none is a warning in the group of one that does", "[mdev]") {
  NodeFacts facts = Node({T4(kT4, 5, 0), T4(kT4b, 5, 0)});
  facts.mdev.parents = {ParentOf(kT4)};
  const Plan plan = PlanFor(facts, Wanting({{"GRID T4-1Q", 2}}));
  CHECK(plan.refusals.empty());
  CHECK(Codes(plan.warnings) == "vfio-driver-missing 0000:5e:00.0");
  CHECK(Created(plan) == "3b:2 ");
}

TEST_CASE("VGPU: a card without a group that makes none is listed", "[mdev]") {
  NodeFacts facts = LoneParents();
  facts.mdev.parents.clear();
  const Plan plan = PlanFor(facts, Wanting({{"GRID T4-1Q", 2}}));
  CHECK(plan.refusals.size() == 3);
  CHECK(PlanOfT4(plan).verdict == Verdict::kRefused);
  CHECK(Codes(PlanOfT4(plan).refusals) == "vfio-driver-missing 0000:3b:00.0");
}

}  // namespace
}  // namespace vfio_agent
