// From groups to what the kubelet is told: names, units, their states.
#include <catch2/catch.hpp>

#include "absl/strings/str_format.h"
#include "iommu/plan/plan.h"
#include "test/support/facts.h"

namespace vfio_agent {
namespace {

// "0000:3b:00.0 group 17: ready", one line for each unit.
std::string Units(const Resource& resource) {
  std::string text;
  for (const Unit& unit : resource.units) {
    text +=
        absl::StrFormat("%s group %d: %s\n", unit.id, unit.group.value_or(-1), Name(unit.state));
  }
  return text;
}

Policy Named(const std::string& first, const std::string& second) {
  return {.resources = {{.name = first, .select = {{.classes = {"0302"}}}},
                        {.name = second, .select = {{.classes = {"0108"}}}}}};
}

TEST_CASE("a resource has one unit for each primary, sorted by address", "[iommu]") {
  const Plan plan = DefaultPlan(Node({Gpu("0000:91:00.0", 3), Gpu("0000:3b:00.0", 17, "vfio-pci"),
                                      Audio("0000:3b:00.1", 17, "vfio-pci")}));
  REQUIRE(plan.resources.size() == 1);
  CHECK(plan.resources[0].name == "nvidia.com/GH100_H100_SXM5_80GB");
  CHECK(plan.resources[0].vendor == 0x10de);
  CHECK(plan.resources[0].device == 0x2330);
  CHECK(Units(plan.resources[0]) ==
        "0000:3b:00.0 group 17: ready\n0000:91:00.0 group 3: to-bind\n");
}

TEST_CASE("a unit that is not ready says why", "[iommu]") {
  NodeFacts facts = Node({Gpu("0000:3b:00.0", 17, "vfio-pci"), Gpu("0000:5e:00.0", 18),
                          Nvme("0000:5f:00.0", 18), Gpu("0000:91:00.0", 19)});
  facts.vfio_nodes.erase("17");
  const std::vector<Unit> units = DefaultPlan(facts).resources.at(0).units;
  REQUIRE(units.size() == 3);
  CHECK(units[0].state == UnitState::kUnhealthy);
  CHECK(units[0].reason == "node-missing: /dev/vfio/17 is not there");
  CHECK(units[1].state == UnitState::kRefused);
  CHECK(units[1].reason.starts_with("foreign-member: 0000:5f:00.0 (144d:a808, driver nvme)"));
  CHECK(units[2].state == UnitState::kToBind);
  CHECK(units[2].reason == "waits to be bound");
}

TEST_CASE("a ready unit has no reason", "[iommu]") {
  const Plan plan = DefaultPlan(Node({Gpu("0000:3b:00.0", 17, "vfio-pci")}));
  CHECK(plan.resources.at(0).units.at(0).reason.empty());
}

TEST_CASE("a resource without a usable unit is still there", "[iommu]") {
  const Plan plan = DefaultPlan(NodeWithoutIommu({Gpu("0000:3b:00.0", 17)}));
  REQUIRE(plan.resources.size() == 1);
  CHECK(plan.resources[0].units.at(0).state == UnitState::kRefused);
}

TEST_CASE("sharedGroup: unit makes one unit of the group's primaries", "[iommu]") {
  const NodeFacts facts =
      Node({Gpu("0000:17:00.0", 33, "vfio-pci"), Gpu("0000:65:00.0", 33, "vfio-pci"),
            Gpu("0000:91:00.0", 34, "vfio-pci")});
  Policy policy = DefaultPolicy();
  policy.resources[0].shared_group = SharedGroup::kUnit;
  const Plan plan = MakePlan(facts, policy, TestNames());
  CHECK(Units(plan.resources.at(0)) ==
        "0000:17:00.0 group 33: ready\n0000:91:00.0 group 34: ready\n");
  CHECK(plan.resources[0].units[0].addresses ==
        std::vector<PciAddress>{At("0000:17:00.0"), At("0000:65:00.0")});
  CHECK(DefaultPlan(facts).resources.at(0).units.size() == 3);  // the default: members
}

TEST_CASE("the NUMA node of a unit is what the kernel says, or none", "[iommu]") {
  NodeFacts facts = Node({Gpu("0000:3b:00.0", 17), Gpu("0000:5e:00.0", 18)});
  Find(facts, "0000:5e:00.0").numa_node = 1;
  const Resource resource = DefaultPlan(facts).resources.at(0);
  CHECK_FALSE(resource.units[0].numa_node);
  CHECK(resource.units[1].numa_node == 1);
  CHECK(resource.numa);
  Policy policy = DefaultPolicy();
  policy.resources[0].numa = false;
  CHECK_FALSE(MakePlan(facts, policy, {}).resources.at(0).numa);
}

TEST_CASE("two device ids of one name are one resource with all their units", "[iommu]") {
  const ModelNames names = {{{0x10de, 0x20b1}, "GA100 [A100 PCIe 40GB]"},
                            {{0x10de, 0x20f1}, "GA100 [A100 PCIe 40GB]"}};
  const NodeFacts facts = Node({Function("0000:3b:00.0", 17, "", "10de:20b1", 0x030200),
                                Function("0000:5e:00.0", 18, "", "10de:20f1", 0x030200)});
  const Plan plan = MakePlan(facts, DefaultPolicy(), names);
  REQUIRE(plan.resources.size() == 1);
  CHECK(plan.resources[0].units.size() == 2);
  CHECK(plan.refusals.empty());
}

TEST_CASE("name-invalid: a name that the kubelet rejects is refused beforehand", "[iommu]") {
  const NodeFacts facts = Node({Gpu("0000:3b:00.0", 17), Nvme("0000:5e:00.0", 18)});
  const Plan plan = MakePlan(facts, Named("gpu", "example.org/disk"), {});
  CHECK(Codes(plan.refusals) == "name-invalid 0000:3b:00.0");
  CHECK(plan.refusals[0].text == "resource name 'gpu': has no domain (want nvidia.com/NAME)");
  CHECK(GroupOf(plan, 17).actions.empty());
  CHECK(GroupOf(plan, 18).verdict == Verdict::kBind);
}

TEST_CASE("name-collision: two resources must not share one variable", "[iommu]") {
  const NodeFacts facts = Node({Gpu("0000:3b:00.0", 17), Nvme("0000:5e:00.0", 18)});
  const Plan plan = MakePlan(facts, Named("a.org/x.y", "a.org/x_y"), {});
  CHECK(Codes(plan.refusals) == "name-collision 0000:5e:00.0");
  CHECK(plan.refusals[0].text ==
        "'a.org/x_y' and 'a.org/x.y' would share the variable PCI_RESOURCE_A_ORG_X_Y");
  CHECK(GroupOf(plan, 17).verdict == Verdict::kBind);
}

TEST_CASE("name-collision: VFs and whole devices of one model do not share a resource", "[iommu]") {
  PciDevice pf = Gpu("0000:0b:00.0", 20);
  pf.virtfns = {At("0000:0b:00.1")};
  NodeFacts facts = Node({pf, Vf("0000:0b:00.1", 21, "0000:0b:00.0", ""), Gpu("0000:3b:00.0", 17)});
  Find(facts, "0000:0b:00.1").device = 0x2330;
  Policy policy = {
      .resources = {{.select = {{.address = At("0000:0b:00.0")}}, .sriov = Sriov{}},
                    {.select = {{.classes = {"0302"}}}, .exclude = {{.address = pf.address}}}}};
  const Plan plan = MakePlan(facts, policy, TestNames(), {});
  CHECK(Codes(plan.refusals) == "name-collision 0000:0b:00.1");
  CHECK(plan.refusals.at(0).remedy == "give the entry with `sriov` a `name` or a `suffix`");
  CHECK(GroupOf(plan, 21).actions.empty());
  CHECK(GroupOf(plan, 17).verdict == Verdict::kBind);
  policy.resources[0].suffix = "_VF";
  CHECK(MakePlan(facts, policy, TestNames(), {}).refusals.empty());
}

TEST_CASE("hyphens and underscores make different variables", "[iommu]") {
  const NodeFacts facts = Node({Gpu("0000:3b:00.0", 17), Nvme("0000:5e:00.0", 18)});
  CHECK(MakePlan(facts, Named("a.org/x-y", "a.org/x_y"), {}).refusals.empty());
}

TEST_CASE("groups are listed by number and the node's IOMMU is told", "[iommu]") {
  const Plan plan = DefaultPlan(Node({Gpu("0000:01:00.0", 40), Gpu("0000:02:00.0", 3),
                                      Gpu("0000:03:00.0", -1), Gpu("0000:04:00.0", 0)}));
  std::string order;
  for (const GroupPlan& group : plan.groups)
    order += absl::StrFormat("%d ", group.group.value_or(-1));
  CHECK(order == "0 3 40 -1 ");
  CHECK(plan.iommu.kind == IommuKind::kIntel);
  CHECK(plan.iommu.state == IommuState::kOn);
}

TEST_CASE("the words of the plan are those of its JSON", "[iommu]") {
  CHECK(Name(Verdict::kBind) == "bind");
  CHECK(Name(Verdict::kBound) == "bound");
  CHECK(Name(Verdict::kRefused) == "refused");
  CHECK(Name(Verdict::kUnselected) == "unselected");
  CHECK(Name(Role::kPrimary) == "primary");
  CHECK(Name(Role::kCompanion) == "companion");
  CHECK(Name(Role::kAllowed) == "allowed");
  CHECK(Name(Role::kForeign) == "foreign");
  CHECK(Name(Role::kBridge) == "bridge");
  CHECK(Name(MemberAction::kBind) == "bind");
  CHECK(Name(MemberAction::kKeep) == "keep");
  CHECK(Name(MemberAction::kNone) == "none");
  CHECK(Name(UnitState::kToBind) == "to-bind");
  CHECK(Name(UnitState::kReady) == "ready");
  CHECK(Name(UnitState::kHeld) == "held");
  CHECK(Name(UnitState::kWithheld) == "withheld");
  CHECK(Name(UnitState::kUnhealthy) == "unhealthy");
  CHECK(Name(UnitState::kRefused) == "refused");
  CHECK(Name(IommuState::kNoIommu) == "noiommu");
  CHECK(Name(IommuState::kUnknown) == "unknown");
  CHECK(Name(IommuKind::kArmSmmu) == "arm-smmu");
  CHECK(Name(IommuKind::kVirtio) == "virtio");
}

}  // namespace
}  // namespace vfio_agent
