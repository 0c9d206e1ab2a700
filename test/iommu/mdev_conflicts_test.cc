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

TEST_CASE("VGPU: beside another manager of vGPUs no instance is made, and those there are served",
          "[mdev]") {
  NodeFacts facts = Node({T4(kT4, 5, 0)});
  facts.mdev.parents = {ParentOf(kT4)};
  Policy policy = Wanting({{"nvidia-222", 1}});
  Custody custody;
  custody.tenancy.emplace();
  custody.tenancy->claims.rivals = {GENERATE(
      as<std::string>(), "ops/nvidia-vgpu-device-manager-zx4t8", "ops/nvidia-vfio-manager-x7k2p",
      "harvester-system/harvester-pcidevices-controller-fgml9")};
  const auto make = [&] { return PlanFor(facts, policy, custody); };
  CHECK(Codes(make().refusals) == "foreign-manager 0000:3b:00.0");
  CHECK(States(make()) == "refused ");
  CHECK(Created(make()).empty());
  CHECK(make().warnings.empty());
  SECTION("with a warning") {
    AddInstance(facts, kForeign, kT4, 40);
    CHECK(make().refusals.empty());
    CHECK(States(make()) == "ready ");
    CHECK(Codes(make().warnings) == "foreign-manager 0000:3b:00.0");
  }
  SECTION("unless an operator overrules it for the parent") {
    policy.guard_override = {At(kT4)};
    CHECK(make().refusals.empty());
    CHECK(Created(make()) == "3b:1 ");
    CHECK(make().warnings.at(0).overruled);
  }
}

TEST_CASE("VGPU: a card with mediated devices is not taken whole from under them", "[mdev]") {
  NodeFacts facts = Node({T4(kT4, 5, 0)});
  CHECK(GroupOf(PlanFor(facts, DefaultPolicy(), Asked()), 5).verdict == Verdict::kBind);
  AddInstance(facts, kForeign, kT4, 40);
  Custody custody = Asked();
  const std::string has = std::string("has 1 mdev instance (") + kForeign + ")";
  custody.inquiry->use.devices[At(kT4)] = {{UseKind::kManager, has, "mdevctl stop"}};
  const Plan plan = PlanFor(facts, DefaultPolicy(), custody);
  CHECK(Codes(GroupOf(plan, 5).refusals) == "held 0000:3b:00.0");  // told once, with one remedy
  CHECK(GroupOf(plan, 5).actions.empty());
  REQUIRE(plan.resources.size() == 1);
  CHECK(plan.resources[0].units.at(0).state == UnitState::kRefused);  // no pod has the card
  CHECK_THAT(plan.refusals.at(0).remedy, Catch::Contains(kForeign));
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

TEST_CASE("VGPU: a resource means our instances of its type, and not the others of the parent",
          "[mdev]") {
  NodeFacts facts = Node({T4(kT4, 5, 0), Gpu("0000:11:00.0", 6)});
  facts.mdev.parents = {ParentOf(kT4)};
  const std::string q1 = MdevUuid(At(kT4), "nvidia-222", 0);
  const std::string q4 = MdevUuid(At(kT4), "nvidia-225", 0);
  AddInstance(facts, q1, kT4, 40);
  AddInstance(facts, kForeign, kT4, 41);
  AddInstance(facts, q4, kT4, 42, "nvidia-225");
  const Plan plan = PlanFor(facts, Wanting({{"nvidia-222", 1}, {"nvidia-225", 1}},
                                           MdevSpread::kEach, {{.address = At(kT4)}}));
  using Uuids = std::set<std::string>;
  CHECK(OwnMdevs(facts) == Uuids{q1, q4});
  CHECK(OwnMdevsOf(facts, plan.resources, kQ1) == Uuids{q1});
  CHECK(OwnMdevsOf(facts, plan.resources, "nvidia.com/GRID_T4-4Q") == Uuids{q4});
  REQUIRE(plan.resources.size() == 3);
  for (const Resource& resource : plan.resources) {
    const bool mdev = !resource.units[0].mdev_type.empty();
    CHECK(OwnMdevsOf(facts, plan.resources, resource.name).has_value() == mdev);
  }
}

TEST_CASE("VGPU: a type that is named twice, by its name and its directory, counts once",
          "[mdev]") {
  NodeFacts facts = Node({T4(kT4, 5, 0)});
  facts.mdev.parents = {ParentOf(kT4)};
  const Plan plan = PlanFor(facts, Wanting({{"GRID T4-1Q", 1}, {"nvidia-222", 1}}));
  CHECK(Codes(plan.refusals) == "name-collision 0000:3b:00.0");
  CHECK(States(plan) == "refused ");
  CHECK(GroupOf(plan, 5).actions.empty());
}

TEST_CASE("VGPU: instances of one type are served in one way, by the entry that comes first",
          "[mdev]") {
  NodeFacts facts = Node({T4(kT4, 5, 0), T4(kT4b, 6, 0)});
  facts.mdev.parents = {ParentOf(kT4), ParentOf(kT4b)};
  Policy policy = Wanting({{"nvidia-222", 1}}, MdevSpread::kEach, {{.address = At(kT4)}});
  policy.mdev[0].serve = Serve::kDra;
  const Plan one = PlanFor(facts, policy);
  const Resource* const claimed = Named(one, kQ1);
  REQUIRE(claimed != nullptr);
  CHECK(claimed->serve == Serve::kDra);
  CHECK(claimed->units.at(0).type_name == "GRID T4-1Q");
  policy.mdev.push_back(policy.mdev[0]);
  policy.mdev[1].parents = {{.address = At(kT4b)}};
  CHECK(States(PlanFor(facts, policy)) == "to-bind to-bind ");
  policy.mdev[1].serve = Serve::kDevicePlugin;
  const Plan both = PlanFor(facts, policy);
  CHECK(Codes(both.refusals) == "name-collision 0000:5e:00.0");
  CHECK_THAT(both.refusals.at(0).text, Catch::Contains("`serve: dra`"));
  CHECK(States(both) == "to-bind ");
}

TEST_CASE("VGPU: what was cut off on its way back goes on, though its group makes instances",
          "[mdev]") {
  NodeFacts facts =
      Node({T4(kT4, 5, 0), Function("0000:3b:00.1", 5, "vfio-pci", "10de:10f8", 0x040300)});
  facts.mdev.parents = {ParentOf(kT4)};
  Custody custody = Asked(TakenFrom({{"0000:3b:00.1", "snd_hda_intel"}}));
  custody.records.at(At("0000:3b:00.1")).releasing = true;
  const Plan plan = PlanFor(facts, Wanting({{"GRID T4-1Q", 0}}), custody);
  REQUIRE(GroupOf(plan, 5).makes_mdevs);
  REQUIRE(GroupOf(plan, 5).verdict == Verdict::kBound);
  CHECK(FinishedRecords(custody.records, plan).empty());
  REQUIRE(PlanRecovery(facts, custody, plan).size() == 1);
  CHECK(PlanRecovery(facts, custody, plan)[0].members ==
        std::vector<PciAddress>{At("0000:3b:00.1")});
}

}  // namespace
}  // namespace vfio_agent
