// What the texts tell an operator to do where the facts of the case decide it.
#include <catch2/catch.hpp>

#include "iommu/plan/plan.h"
#include "test/support/facts.h"

namespace vfio_agent {
namespace {

constexpr char kPf[] = "0000:0b:00.0";
constexpr char kVf1[] = "0000:0b:00.1";
constexpr char kVf2[] = "0000:0b:00.2";

PciDevice Pf(const std::vector<std::string>& vfs) {
  PciDevice pf = Gpu(kPf, 20);
  pf.sriov_total_vfs = Fact<int>(8);
  for (const std::string& vf : vfs) pf.virtfns.push_back(At(vf));
  return pf;
}

Policy VfPolicy(std::optional<int> vfs) {
  Policy policy = DefaultPolicy();
  policy.resources[0].name = "nvidia.com/vf";
  policy.resources[0].sriov = Sriov{.vfs = vfs};
  return policy;
}

NodeFacts TwoVfs() {
  return Node({Pf({kVf1, kVf2}), Vf(kVf1, 21, kPf, "vfio-pci"), Vf(kVf2, 22, kPf, "vfio-pci")});
}

// The one refusal that there is.
Refusal Only(const Plan& plan) {
  REQUIRE(plan.refusals.size() == 1);
  return plan.refusals.front();
}

TEST_CASE("a VF in its physical function's group: allowMembers is not the way out", "[iommu]") {
  const NodeFacts facts = Node({Pf({kVf1}), Vf(kVf1, 20, kPf, "")});
  const Refusal refusal = Only(MakePlan(facts, VfPolicy(std::nullopt), {}, Asked()));
  CHECK(refusal.code == Code::kForeignMember);
  CHECK_THAT(refusal.remedy,
             Catch::Contains("stays with its driver, so allowMembers does not help") &&
                 Catch::Contains("`vfio-agent explain 0000:0b:00.0`"));
  // And allowMembers does not help indeed.
  Policy allowed = VfPolicy(std::nullopt);
  allowed.resources[0].allow_members = {{.address = At(kPf)}};
  CHECK(Only(MakePlan(facts, allowed, {}, Asked())).code == Code::kForeignMember);
  const Refusal disk =
      Only(MakePlan(Node({Gpu(kPf, 20), Nvme("0000:0c:00.0", 20)}), DefaultPolicy(), {}, Asked()));
  CHECK_THAT(disk.remedy, Catch::Contains("name the member in resources[].allowMembers"));
}

TEST_CASE("another number of VFs: the way to it, by who has made those that are there", "[iommu]") {
  const NodeFacts facts = TwoVfs();
  Records records = TakenFrom({{kPf, "nvidia"}});
  records.begin()->second.vfs = 2;
  const Refusal ours = Only(MakePlan(facts, VfPolicy(4), {}, Asked(records)));
  CHECK(ours.code == Code::kPfHasVfs);
  CHECK_THAT(ours.text, Catch::EndsWith("those that are there stay in service"));
  CHECK_THAT(ours.remedy, Catch::Contains("to keep the 2: set vfs: 2; to have 4: ") &&
                              Catch::Contains("`vfio-agent release 0000:0b:00.0`") &&
                              !Catch::Contains("sriov_numvfs"));
  const Refusal others = Only(MakePlan(facts, VfPolicy(4), {}, Asked()));
  CHECK_THAT(others.remedy,
             Catch::Contains("`echo 0 > /sys/bus/pci/devices/0000:0b:00.0/sriov_numvfs`") &&
                 !Catch::Contains("vfio-agent release"));
}

TEST_CASE("what a VF of a selected physical function is left out for is told", "[iommu]") {
  Policy policy = VfPolicy(std::nullopt);
  policy.resources[0].exclude = {{.address = At(kVf1)}};
  const Plan plan = MakePlan(TwoVfs(), policy, {}, Asked());
  CHECK(Codes(plan.refusals) == "excluded 0000:0b:00.1");
  CHECK(GroupOf(plan, 21).verdict == Verdict::kRefused);
  CHECK(GroupOf(plan, 22).verdict == Verdict::kBound);
}

TEST_CASE("VFs that are to be made are told in a sentence, and only these", "[iommu]") {
  const Plan plan = MakePlan(Node({Pf({})}), VfPolicy(4), {}, Asked());
  CHECK(TellVfsToMake(plan) == std::vector<std::string>{"4 virtual functions of 0000:0b:00.0 are "
                                                        "to be made for nvidia.com/vf"});
  Policy one = VfPolicy(1);
  one.resources[0].name.clear();
  CHECK(TellVfsToMake(MakePlan(Node({Pf({})}), one, {}, Asked())) ==
        std::vector<std::string>{"1 virtual function of 0000:0b:00.0 is to be made"});
  CHECK(TellVfsToMake(MakePlan(TwoVfs(), VfPolicy(2), {}, Asked())).empty());
}

TEST_CASE("on a virtual machine the firmware is not the place to switch an IOMMU on", "[iommu]") {
  NodeFacts facts = NodeWithoutIommu({Gpu(kPf, 0)});
  CHECK_THAT(DefaultPlan(facts).refusals.at(0).remedy, Catch::Contains("in the firmware"));
  facts.iommu.is_guest = true;
  const Plan plan = DefaultPlan(facts);
  REQUIRE(Codes(plan.refusals) == "iommu-off 0000:0b:00.0\nno-iommu-group 0000:0b:00.0");
  for (const Refusal& refusal : plan.refusals) {
    CHECK_THAT(refusal.remedy, Catch::Contains("give it a virtual IOMMU where it is defined"));
  }
  PciDevice pf = Pf({});
  pf.group.reset();
  NodeFacts physical = NodeWithoutIommu({pf});
  physical.iommu.is_guest = true;
  CHECK_THAT(Only(MakePlan(physical, VfPolicy(2), {}, Asked())).remedy,
             Catch::Contains("virtual IOMMU"));
}

TEST_CASE("where it is not known whether an IOMMU is on, none is called off", "[iommu]") {
  NodeFacts facts = NodeWithoutIommu({Gpu(kPf, 0)});
  facts.iommu = {.state = IommuState::kUnknown, .evidence = {"nothing tells"}};
  const Refusal refusal = Only(DefaultPlan(facts));
  CHECK(refusal.code == Code::kNoIommuGroup);
  CHECK_THAT(refusal.text,
             Catch::EndsWith("and whether an IOMMU is on is not known: nothing tells"));
  CHECK_THAT(refusal.remedy, Catch::Contains("`vfio-agent snapshot`"));
}

TEST_CASE("an event collector that pcieport has does not spoil its group, another driver does",
          "[iommu]") {
  const auto codes = [](const std::string& driver) {
    return Codes(DefaultPlan(Node({Gpu(kPf, 20),
                                   Function("0000:00:00.3", 20, driver, "1022:14a6", 0x080700)}))
                     .refusals);
  };
  CHECK(codes("pcieport").empty());
  CHECK(codes("other") == "foreign-member 0000:00:00.3");
}

TEST_CASE("a unit that nothing isolates stays UNSAFE while a pod has it", "[iommu]") {
  NodeFacts facts = Node({Gpu(kPf, 20, "vfio-pci")});
  facts.iommu = {.state = IommuState::kNoIommu};
  facts.groups.at(20).noiommu = true;
  facts.vfio_nodes = {"vfio", "noiommu-20"};
  Policy policy = DefaultPolicy();
  policy.resources[0].name = "example.org/gpu";
  policy.resources[0].noiommu = true;
  Custody custody{.tenancy = Tenancy{}};
  const auto unit = [&] {
    return MakePlan(facts, policy, {}, custody).resources.at(0).units.at(0);
  };
  CHECK_THAT(unit().reason, Catch::StartsWith("noiommu: UNSAFE"));
  CHECK(ServesUnsafe(MakePlan(facts, policy, {}, custody)));
  custody.tenancy->claims.list = {{"team", "dpdk", "compute", "example.org/gpu", kPf}};
  REQUIRE(unit().state == UnitState::kHeld);
  CHECK_THAT(unit().reason, Catch::Contains("pod team/dpdk (container compute); noiommu: UNSAFE"));
  policy.resources[0].noiommu = false;
  CHECK_FALSE(ServesUnsafe(MakePlan(facts, policy, {}, custody)));
}

}  // namespace
}  // namespace vfio_agent
