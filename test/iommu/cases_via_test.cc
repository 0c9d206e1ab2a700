// Reported failures about whole groups, with what is right.
#include <catch2/catch.hpp>

#include "iommu/plan/plan.h"
#include "iommu/plan/release.h"
#include "iommu/policy/naming.h"
#include "test/support/facts.h"

namespace vfio_agent {
namespace {

std::string UnitsOf(const Plan& plan) {
  std::string text;
  for (const Resource& resource : plan.resources) {
    for (const Unit& unit : resource.units) text += unit.id + " ";
  }
  return text;
}

TEST_CASE("VIA-01: the audio function that a sound driver holds is bound along", "[iommu]") {
  const NodeFacts facts =
      Node({Function("0000:01:00.0", 1, "vfio-pci", "10de:1392", 0x030000),
            Function("0000:01:00.1", 1, "snd_hda_intel", "10de:0fbc", 0x040300)});
  const Plan plan = DefaultPlan(facts);
  CHECK(Roles(GroupOf(plan, 1)) ==
        "0000:01:00.0 primary keep\n0000:01:00.1 companion bind vfio-pci");
  CHECK(plan.resources.at(0).units.at(0).state == UnitState::kToBind);  // not ready before that
  SECTION("and where it cannot be moved the unit says which member is the reason") {
    NodeFacts stuck = facts;
    Find(stuck, "0000:01:00.1").has_override = false;
    const Unit unit = DefaultPlan(stuck).resources.at(0).units.at(0);
    CHECK(unit.state == UnitState::kRefused);
    CHECK(unit.reason.find("0000:01:00.1") != std::string::npos);
  }
}

TEST_CASE("VIA-03: companions come from the group, not from device links", "[iommu]") {
  const Plan plan =
      DefaultPlan(Node({Function("0000:86:00.0", 6, "nvidia", "10de:1ff2", 0x030000),
                        Function("0000:86:00.1", 6, "snd_hda_intel", "10de:10fa", 0x040300)}));
  CHECK(Roles(GroupOf(plan, 6)) ==
        "0000:86:00.0 primary bind vfio-pci\n0000:86:00.1 companion bind vfio-pci");
}

TEST_CASE("VIA-05: a root port in the GPU's group is fine and is never unbound", "[iommu]") {
  const Plan plan = DefaultPlan(
      Node({Bridge("0000:00:01.0", 1), Function("0000:01:00.0", 1, "nvidia", "10de:1187", 0x030000),
            Function("0000:01:00.1", 1, "snd_hda_intel", "10de:0e0a", 0x040300)}));
  CHECK(GroupOf(plan, 1).verdict == Verdict::kBind);
  CHECK(Shell(GroupOf(plan, 1).actions).find("0000:00:01.0") == std::string::npos);
}

TEST_CASE("VIA-07: a group with the system's NVMe is refused", "[iommu]") {
  const Plan plan = DefaultPlan(Node({Function("0000:01:00.0", 14, "nvidia", "10de:2484", 0x030000),
                                      Audio("0000:01:00.1", 14), Nvme("0000:02:00.0", 14)}));
  CHECK(Codes(plan.refusals) == "foreign-member 0000:02:00.0");
  CHECK(GroupOf(plan, 14).actions.empty());
}

TEST_CASE("VIA-09: every slot of a small board in one group is refused with all members",
          "[iommu]") {
  std::vector<PciDevice> devices;
  for (const char* port : {"0000:00:02.0", "0000:00:02.2", "0000:00:02.3", "0000:00:02.5"}) {
    devices.push_back(Bridge(port, 1));
  }
  for (const char* nic : {"0000:01:00.0", "0000:02:00.0", "0000:03:00.0"}) {
    devices.push_back(Function(nic, 1, "igb", "8086:157b", 0x020000));
  }
  devices.push_back(Function("0000:04:00.0", 1, "", "168c:003c", 0x028000));
  const Policy policy{
      .resources = {{.name = "example.org/wifi", .select = {{.vendor = uint16_t{0x168c}}}}}};
  const Plan plan = MakePlan(Node(devices), policy, {});
  CHECK(GroupOf(plan, 1).members.size() == 8);
  CHECK(Codes(plan.refusals) ==
        "foreign-member 0000:01:00.0\nforeign-member 0000:02:00.0\nforeign-member 0000:03:00.0");
  CHECK(plan.refusals[0].remedy.find("ACS") != std::string::npos);
}

TEST_CASE("VIA-11: two equal GPUs in one group can be one unit with both addresses", "[iommu]") {
  const NodeFacts facts = Node({Function("0000:17:00.0", 33, "vfio-pci", "10de:1e07", 0x030000),
                                Function("0000:65:00.0", 33, "vfio-pci", "10de:1e07", 0x030000)});
  Policy policy = DefaultPolicy();
  policy.resources[0].shared_group = SharedGroup::kUnit;
  const Plan plan = MakePlan(facts, policy, TestNames());
  CHECK(UnitsOf(plan) == "0000:17:00.0 ");
  CHECK(plan.resources.at(0).units.at(0).addresses.size() == 2);
}

TEST_CASE("VIA-13: a unit names its primary function, never its companions", "[iommu]") {
  const Plan plan = DefaultPlan(
      Node({Gpu("0000:21:00.0", 10, "vfio-pci"), Audio("0000:21:00.1", 10, "vfio-pci"),
            Gpu("0000:41:00.0", 11, "vfio-pci"), Audio("0000:41:00.1", 11, "vfio-pci")}));
  CHECK(UnitsOf(plan) == "0000:21:00.0 0000:41:00.0 ");
  for (const Unit& unit : plan.resources.at(0).units) {
    CHECK(unit.addresses == std::vector<PciAddress>{unit.primary});
  }
}

TEST_CASE("VIA-15: an NVSwitch of class 0680 is an endpoint", "[iommu]") {
  const PciDevice nvswitch = Function("0000:05:00.0", 62, "nvidia-nvswitch", "10de:22a3", 0x068000);
  SECTION("that can be selected and bound") {
    Policy policy = DefaultPolicy();
    policy.resources[0].select.push_back({.vendor = uint16_t{0x10de}, .classes = {"0680"}});
    const Plan plan = MakePlan(Node({nvswitch}), policy, TestNames());
    CHECK(GroupOf(plan, 62).resource == "nvidia.com/GH100_H100_NVSWITCH");
    CHECK(Roles(GroupOf(plan, 62)) == "0000:05:00.0 primary bind vfio-pci");
  }
  SECTION("and that spoils a GPU's group under its host driver") {
    const Plan plan = DefaultPlan(Node({nvswitch, Gpu("0000:06:00.0", 62)}));
    CHECK(Codes(plan.refusals) == "foreign-member 0000:05:00.0");
  }
}

TEST_CASE("VIA-17: a NIC in the GPU's group goes along only when it is named", "[iommu]") {
  NodeFacts facts = Node({Function("0000:18:00.0", 20, "mlx5_core", "15b3:1021", 0x020700),
                          Function("0000:1b:00.0", 20, "nvidia", "10de:2901", 0x030200)});
  CHECK(Codes(DefaultPlan(facts).refusals) == "foreign-member 0000:18:00.0");

  Policy policy = DefaultPolicy();
  policy.resources[0].allow_members = {{.address = At("0000:18:00.0")}};
  const Plan plan = MakePlan(facts, policy, OwnModels());
  CHECK(GroupOf(plan, 20).resource == "nvidia.com/GB100_B200");
  CHECK(Roles(GroupOf(plan, 20)) ==
        "0000:18:00.0 allowed bind vfio-pci\n0000:1b:00.0 primary bind vfio-pci");
  CHECK(UnitsOf(plan) == "0000:1b:00.0 ");

  SECTION("and both go back to their own drivers together") {
    for (PciDevice& device : facts.devices) device.driver = "vfio-pci";
    const Custody custody =
        Asked(TakenFrom({{"0000:18:00.0", "mlx5_core"}, {"0000:1b:00.0", "nvidia"}}));
    const auto releases = PlanRelease(facts, custody, {At("0000:1b:00.0")});
    const std::string steps = Shell(releases.at(0).actions);
    CHECK(steps.find("echo mlx5_core > /sys/bus/pci/devices/0000:18:00.0") != std::string::npos);
    CHECK(steps.find("echo nvidia > /sys/bus/pci/devices/0000:1b:00.0") != std::string::npos);
  }
}

}  // namespace
}  // namespace vfio_agent
