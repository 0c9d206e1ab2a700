// Who is what in a group: primary, companion, allowed, foreign, bridge.
#include <catch2/catch.hpp>

#include "iommu/plan/plan.h"
#include "test/support/facts.h"

namespace vfio_agent {
namespace {

// The built-in entry, changed by `change`.
template <typename Change>
Policy With(Change change) {
  Policy policy = DefaultPolicy();
  change(policy.resources.front());
  return policy;
}

Plan PlanWith(const NodeFacts& facts, const Policy& policy) {
  return MakePlan(facts, policy, TestNames());
}

TEST_CASE("the functions of a GPU's slot go along with it", "[iommu]") {
  const Plan plan = DefaultPlan(Node({Gpu("0000:3b:00.0", 17), Audio("0000:3b:00.1", 17)}));
  const GroupPlan& group = GroupOf(plan, 17);
  CHECK(group.verdict == Verdict::kBind);
  CHECK(group.resource == "nvidia.com/GH100_H100_SXM5_80GB");
  CHECK(Roles(group) == "0000:3b:00.0 primary bind vfio-pci\n0000:3b:00.1 companion bind vfio-pci");
}

TEST_CASE("a function of the slot that is in another group is left alone", "[iommu]") {
  const Plan plan = DefaultPlan(Node({Gpu("0000:3b:00.0", 17), Audio("0000:3b:00.1", 18)}));
  CHECK(Roles(GroupOf(plan, 17)) == "0000:3b:00.0 primary bind vfio-pci");
  CHECK(GroupOf(plan, 18).verdict == Verdict::kUnselected);
  CHECK(Roles(GroupOf(plan, 18)) == "0000:3b:00.1 foreign none");
}

TEST_CASE("a device of another slot is no companion although it is in the group", "[iommu]") {
  const Plan plan = DefaultPlan(Node({Gpu("0000:3b:00.0", 17), Audio("0000:3b:01.0", 17)}));
  CHECK(Codes(plan.refusals) == "foreign-member 0000:3b:01.0");
  CHECK(Roles(GroupOf(plan, 17)) == "0000:3b:00.0 primary none\n0000:3b:01.0 foreign none");
}

TEST_CASE("bridges stay, and a selector never makes one a primary", "[iommu]") {
  PciDevice port = Bridge("0000:00:01.0", 17);
  port.vendor = 0x10de;
  const Policy policy =
      With([](ResourceRule& rule) { rule.select = {{.vendor = uint16_t{0x10de}}}; });
  const Plan plan = PlanWith(Node({port, Gpu("0000:3b:00.0", 17)}), policy);
  CHECK(plan.refusals.empty());
  CHECK(Roles(GroupOf(plan, 17)) == "0000:00:01.0 bridge keep\n0000:3b:00.0 primary bind vfio-pci");
}

TEST_CASE("a bridge is told by its header, not by its class", "[iommu]") {
  PciDevice odd = Bridge("0000:00:01.0", 17);
  odd.class_code = 0x068000;
  const Plan plan = DefaultPlan(Node({odd, Gpu("0000:3b:00.0", 17)}));
  CHECK(GroupOf(plan, 17).verdict == Verdict::kBind);
}

TEST_CASE("without companions another function is foreign", "[iommu]") {
  const Policy policy = With([](ResourceRule& rule) { rule.companions = Companions::kNone; });
  const Plan plan = PlanWith(Node({Gpu("0000:3b:00.0", 17), Audio("0000:3b:00.1", 17)}), policy);
  CHECK(Codes(plan.refusals) == "foreign-member 0000:3b:00.1");
}

TEST_CASE("listed companions are just those that are listed", "[iommu]") {
  const Policy policy = With([](ResourceRule& rule) {
    rule.companions = Companions::kListed;
    rule.companion_list = {{.classes = {"0108"}}};
  });
  const NodeFacts facts =
      Node({Gpu("0000:3b:00.0", 17), Audio("0000:3b:00.1", 17), Nvme("0000:3c:00.0", 17)});
  const Plan plan = PlanWith(facts, policy);
  CHECK(Codes(plan.refusals) == "foreign-member 0000:3b:00.1");
  CHECK(GroupOf(plan, 17).members.at(2).role == Role::kCompanion);
}

TEST_CASE("what the configuration keeps out is no companion", "[iommu]") {
  const Policy policy =
      With([](ResourceRule& rule) { rule.exclude = {{.address = At("0000:3b:00.1")}}; });
  const Plan plan = PlanWith(Node({Gpu("0000:3b:00.0", 17), Audio("0000:3b:00.1", 17)}), policy);
  CHECK(Codes(plan.refusals) == "foreign-member 0000:3b:00.1");
}

TEST_CASE("a member that the configuration allows goes along", "[iommu]") {
  const Policy policy =
      With([](ResourceRule& rule) { rule.allow_members = {{.vendor = uint16_t{0x144d}}}; });
  const Plan plan = PlanWith(Node({Gpu("0000:3b:00.0", 17), Nvme("0000:3c:00.0", 17)}), policy);
  CHECK(plan.refusals.empty());
  CHECK(Roles(GroupOf(plan, 17)) ==
        "0000:3b:00.0 primary bind vfio-pci\n0000:3c:00.0 allowed bind vfio-pci");
}

TEST_CASE("a foreign member spoils the group only under a host driver", "[iommu]") {
  const auto [driver, spoils] = GENERATE(table<std::string, bool>({{"nvme", true},
                                                                   {"", false},
                                                                   {"vfio-pci", false},
                                                                   {"pci-stub", false},
                                                                   {"mlx5_vfio_pci", false},
                                                                   {"uio_pci_generic", true}}));
  CAPTURE(driver);
  const Plan plan = DefaultPlan(Node({Gpu("0000:3b:00.0", 17), Nvme("0000:3c:00.0", 17, driver)}));
  CHECK((Codes(plan.refusals) == "foreign-member 0000:3c:00.0") == spoils);
  CHECK((GroupOf(plan, 17).verdict == Verdict::kBind) == !spoils);
  CHECK(GroupOf(plan, 17).members.at(1).action == MemberAction::kNone);
}

TEST_CASE("a member of another resource rides along with the first", "[iommu]") {
  Policy policy = DefaultPolicy();
  policy.resources.push_back({.name = "example.org/disk", .select = {{.classes = {"0108"}}}});
  const Plan plan = PlanWith(Node({Gpu("0000:3b:00.0", 17), Nvme("0000:3a:00.0", 17)}), policy);
  CHECK(GroupOf(plan, 17).resource == "nvidia.com/GH100_H100_SXM5_80GB");
  CHECK(Roles(GroupOf(plan, 17)) ==
        "0000:3a:00.0 allowed bind vfio-pci\n0000:3b:00.0 primary bind vfio-pci");
  REQUIRE(plan.resources.size() == 1);
}

TEST_CASE("the entry that stands first names the group, whatever the addresses", "[iommu]") {
  Policy policy = DefaultPolicy();
  policy.resources.insert(policy.resources.begin(),
                          {.name = "example.org/disk", .select = {{.classes = {"0108"}}}});
  const Plan plan = PlanWith(Node({Gpu("0000:3b:00.0", 17), Nvme("0000:3c:00.0", 17)}), policy);
  CHECK(GroupOf(plan, 17).resource == "example.org/disk");
  CHECK(GroupOf(plan, 17).members.at(0).role == Role::kAllowed);
}

TEST_CASE("excluded: a device that is selected and kept out is refused by name", "[iommu]") {
  const Policy policy =
      With([](ResourceRule& rule) { rule.exclude = {{.address = At("0000:3b:00.0")}}; });
  const Plan plan = PlanWith(Node({Gpu("0000:3b:00.0", 17), Gpu("0000:5e:00.0", 18)}), policy);
  CHECK(Codes(plan.refusals) == "excluded 0000:3b:00.0");
  CHECK(GroupOf(plan, 17).verdict == Verdict::kRefused);
  CHECK(GroupOf(plan, 17).actions.empty());
  CHECK(GroupOf(plan, 18).verdict == Verdict::kBind);
  REQUIRE(plan.resources.size() == 1);
  CHECK(plan.resources[0].units.size() == 1);
}

TEST_CASE("what one entry keeps out another may take", "[iommu]") {
  Policy policy =
      With([](ResourceRule& rule) { rule.exclude = {{.address = At("0000:3b:00.0")}}; });
  policy.resources.push_back({.name = "example.org/gpu", .select = {{.vendor = uint16_t{0x10de}}}});
  const Plan plan = PlanWith(Node({Gpu("0000:3b:00.0", 17)}), policy);
  CHECK(plan.refusals.empty());
  CHECK(GroupOf(plan, 17).resource == "example.org/gpu");
}

TEST_CASE("a VF is not selected by what it shares with its physical function", "[iommu]") {
  const NodeFacts facts = Node({Vf("0000:3b:00.2", 18, "0000:3b:00.0")});
  const Plan plan = DefaultPlan(facts);
  CHECK(GroupOf(plan, 18).verdict == Verdict::kUnselected);
  CHECK(plan.resources.empty());
}

TEST_CASE("nothing selected means nothing done", "[iommu]") {
  const Plan plan = DefaultPlan(Node({Nvme("0000:01:00.0", 3), Bridge("0000:00:01.0", 2)}));
  CHECK(plan.groups.size() == 2);
  CHECK(plan.resources.empty());
  CHECK(plan.refusals.empty());
  for (const GroupPlan& group : plan.groups) {
    CHECK(group.verdict == Verdict::kUnselected);
    CHECK(group.actions.empty());
  }
}

}  // namespace
}  // namespace vfio_agent
