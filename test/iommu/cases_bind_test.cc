// Reported failures about binding, addresses, power, SR-IOV and NUMA, with what is right.
#include <catch2/catch.hpp>

#include "iommu/plan/plan.h"
#include "test/support/facts.h"

namespace vfio_agent {
namespace {

TEST_CASE("BIND-05: a device without a group is refused in words, before any write", "[iommu]") {
  const Plan plan = DefaultPlan(Node({Function("0000:01:00.0", -1, "", "10de:2204", 0x030000)}));
  CHECK(Codes(plan.refusals) == "no-iommu-group 0000:01:00.0");
  CHECK(plan.refusals[0].text == "0000:01:00.0 (10de:2204, no driver) has no IOMMU group");
  CHECK(GroupOf(plan, std::nullopt).actions.empty());
}

TEST_CASE("BIND-13: of two equal cards only the selected one is taken", "[iommu]") {
  const NodeFacts facts = Node({Function("0000:17:00.0", 20, "nvidia", "10de:1ff2", 0x030000),
                                Function("0000:65:00.0", 45, "nvidia", "10de:1ff2", 0x030000)});
  Policy policy = DefaultPolicy();
  policy.resources[0].select = {{.address = At("0000:17:00.0")}};
  const Plan plan = MakePlan(facts, policy, {});
  CHECK(GroupOf(plan, 20).verdict == Verdict::kBind);
  CHECK(GroupOf(plan, 45).verdict == Verdict::kUnselected);
  CHECK(Shell(GroupOf(plan, 20).actions).find("new_id") == std::string::npos);
  CHECK(plan.resources.at(0).units.size() == 1);
}

TEST_CASE("BIND-15: every device of a node is planned, siblings of one group together", "[iommu]") {
  std::vector<PciDevice> devices;
  int group = 40;
  for (const char* bus : {"3d", "3e", "40", "41", "b1", "b2", "b4", "b5"}) {
    devices.push_back(
        Function(std::string("0000:") + bus + ":00.0", group, "nvidia", "10de:1db6", 0x030200));
    group = group == 40 && devices.size() == 1 ? 40 : group + 1;
  }
  const Plan plan = DefaultPlan(Node(devices));
  CHECK(plan.groups.size() == 7);
  CHECK(Roles(GroupOf(plan, 40)) ==
        "0000:3d:00.0 primary bind vfio-pci\n0000:3e:00.0 primary bind vfio-pci");
  size_t probes = 0;
  for (const GroupPlan& each : plan.groups) {
    for (const Action& action : each.actions) probes += std::holds_alternative<Probe>(action);
  }
  CHECK(probes == 8);
}

TEST_CASE("ADDR-02: a GPU behind VMD is refused and the others are served", "[iommu]") {
  const Plan plan = DefaultPlan(
      Node({Gpu("0000:01:00.0", 1), Bridge("10001:80:05.0", 2), Gpu("10001:8a:00.0", 2)}));
  CHECK(Codes(plan.refusals) == "address-too-wide 10001:8a:00.0");
  CHECK(GroupOf(plan, 1).verdict == Verdict::kBind);
}

TEST_CASE("ADDR-04: root ports with NVIDIA's vendor id are not given away", "[iommu]") {
  PciDevice first = Bridge("0001:00:00.0", 1), second = Bridge("0004:00:00.0", 2);
  first.vendor = second.vendor = 0x10de;
  first.device = 0x229e;
  second.device = 0x229c;
  const NodeFacts facts =
      Node({first, Function("0001:01:00.0", 1, "rtw_8822ce", "10ec:c822", 0x028000), second,
            Nvme("0004:01:00.0", 2)});
  Policy any_nvidia = DefaultPolicy();
  any_nvidia.resources[0].select = {{.vendor = uint16_t{0x10de}}};
  for (const Policy& policy : {DefaultPolicy(), any_nvidia}) {
    const Plan plan = MakePlan(facts, policy, {});
    CHECK(plan.resources.empty());
    CHECK(plan.refusals.empty());
    for (const GroupPlan& group : plan.groups) CHECK(group.actions.empty());
  }
}

TEST_CASE("POWR-01: a GPU that never leaves D3cold is refused for that", "[iommu]") {
  NodeFacts facts = Node({Gpu("0000:01:00.0", 1, "vfio-pci")});
  Find(facts, "0000:01:00.0").config.all_ones = true;
  Find(facts, "0000:01:00.0").power_state = Fact<std::string>("D3cold");
  const Plan plan = DefaultPlan(facts);
  CHECK(Codes(plan.refusals) == "power-d3cold 0000:01:00.0\nconfig-unreadable 0000:01:00.0");
  CHECK(plan.resources.at(0).units.at(0).state == UnitState::kRefused);
}

TEST_CASE("POWR-05: a bus reset that another group would feel is a warning", "[iommu]") {
  NodeFacts facts = Node({Function("0000:03:00.0", 5, "", "1002:738c", 0x120000),
                          Function("0000:03:00.1", 6, "snd_hda_intel", "1002:ab28", 0x040300)});
  Find(facts, "0000:03:00.0").reset_method = Fact<std::string>("bus");
  const Policy policy{
      .resources = {{.name = "amd.com/mi100",
                     .select = {{.vendor = uint16_t{0x1002}, .classes = {"1200"}}}}}};
  const Plan plan = MakePlan(facts, policy, {});
  CHECK(Codes(plan.warnings) == "shared-bus-reset 0000:03:00.0");
  CHECK(plan.warnings[0].text.find("0000:03:00.1") != std::string::npos);
  CHECK(GroupOf(plan, 5).verdict == Verdict::kBind);
}

TEST_CASE("SRIOV-02: VFs are no whole GPUs, and their PF waits until they are gone", "[iommu]") {
  PciDevice pf = Function("0001:04:00.0", 30, "nvidia", "10de:2bb5", 0x030200);
  pf.virtfns = {At("0001:04:00.2"), At("0001:04:03.1")};
  const Plan plan = DefaultPlan(
      Node({pf, Vf("0001:04:00.2", 31, "0001:04:00.0"), Vf("0001:04:03.1", 32, "0001:04:00.0")}));
  CHECK(Codes(plan.refusals) == "pf-has-vfs 0001:04:00.0");
  REQUIRE(plan.resources.size() == 1);
  REQUIRE(plan.resources[0].units.size() == 1);
  CHECK(plan.resources[0].units[0].id == "0001:04:00.0");
  CHECK(GroupOf(plan, 31).verdict == Verdict::kUnselected);
}

TEST_CASE("SRIOV-02: with an opt-in each VF is a unit of its own, the PF none", "[iommu]") {
  PciDevice pf = Function("0001:04:00.0", 30, "nvidia", "10de:2bb5", 0x030200);
  pf.virtfns = {At("0001:04:00.2"), At("0001:04:03.1")};
  Policy policy = DefaultPolicy();
  policy.resources[0].sriov.emplace();
  const Plan plan = MakePlan(
      Node({pf, Vf("0001:04:00.2", 31, "0001:04:00.0"), Vf("0001:04:03.1", 32, "0001:04:00.0")}),
      policy, TestNames());
  CHECK(plan.refusals.empty());
  REQUIRE(plan.resources.size() == 1);
  REQUIRE(plan.resources[0].units.size() == 2);
  CHECK(plan.resources[0].units[1].id == "0001:04:03.1");
  CHECK(GroupOf(plan, 30).actions.empty());
}

TEST_CASE("SRIOV-04: an Intel GPU is off by default, and its PF in use is never taken", "[iommu]") {
  PciDevice pf = Function("0000:00:02.0", 1, "xe", "8086:7d67", 0x030000);
  std::vector<PciDevice> devices;
  for (int i = 1; i <= 7; ++i) {
    PciDevice vf =
        Function("0000:00:02." + std::to_string(i), 19 + i, "vfio-pci", "8086:7d67", 0x030000);
    vf.physfn = pf.address;
    pf.virtfns.push_back(vf.address);
    devices.push_back(vf);
  }
  devices.push_back(pf);
  const NodeFacts facts = Node(devices);
  CHECK(DefaultPlan(facts).resources.empty());
  const Policy intel{
      .resources = {{.name = "intel.com/gpu", .select = {{.vendor = uint16_t{0x8086}}}}}};
  const Plan plan = MakePlan(facts, intel, {});
  CHECK(Codes(plan.refusals) == "pf-has-vfs 0000:00:02.0");
  CHECK(GroupOf(plan, 1).actions.empty());
  Policy vfs = intel;
  vfs.resources[0].sriov.emplace();
  const Plan opted = MakePlan(facts, vfs, {});
  CHECK(opted.refusals.empty());
  CHECK(GroupOf(opted, 1).actions.empty());
  CHECK(opted.resources.at(0).units.size() == 7);
  CHECK(opted.warnings.size() == 7);
  CHECK_THAT(opted.warnings.at(0).text, Catch::Contains("VFIO_MAP_DMA failed"));
  CHECK_THAT(opted.warnings.at(0).remedy, Catch::Contains("host-phys-bits-limit=39"));
}

TEST_CASE("SRIOV-04: a VF that is not of the processor's own adapter maps like any other",
          "[iommu]") {
  struct Row {
    std::string id;
    uint32_t class_code;
    bool below_a_port;
    size_t warnings;
  };
  const Row row =
      GENERATE(Row{"8086:7d67", 0x030000, false, 1}, Row{"8086:7d67", 0x030000, true, 0},
               Row{"8086:1889", 0x020000, false, 0}, Row{"1002:7362", 0x030000, false, 0});
  CAPTURE(row.id, row.class_code, row.below_a_port);
  PciDevice pf = Function("0000:00:02.0", 1, "host", row.id, row.class_code);
  PciDevice vf = Function("0000:00:02.1", 20, "vfio-pci", row.id, row.class_code);
  vf.physfn = pf.address;
  pf.virtfns = {vf.address};
  if (row.below_a_port) vf.parent = At("0000:00:01.0");
  Policy policy{.resources = {{.name = "example.org/vf", .sriov = Sriov{}}}};
  policy.resources[0].select = {{.vendor = pf.vendor}};
  const Plan plan = MakePlan(Node({pf, vf}), policy, {});
  CHECK(plan.refusals.empty());
  CHECK(plan.warnings.size() == row.warnings);
}

TEST_CASE("NUMA-02: the node is what the kernel says, and can be left out", "[iommu]") {
  NodeFacts facts = Node({Gpu("0008:01:00.0", 5)});
  Find(facts, "0008:01:00.0").numa_node = 2;
  Policy policy = DefaultPolicy();
  CHECK(MakePlan(facts, policy, {}).resources.at(0).units.at(0).numa_node == 2);
  policy.resources[0].numa = false;
  CHECK_FALSE(MakePlan(facts, policy, {}).resources.at(0).numa);
}

}  // namespace
}  // namespace vfio_agent
