// One test for each rule that may refuse a group or warn about it.
#include <catch2/catch.hpp>

#include "iommu/plan/plan.h"
#include "test/support/facts.h"

namespace vfio_agent {
namespace {

constexpr char kGpu[] = "0000:3b:00.0";

// A node with one GPU that may be taken, until a test spoils it.
struct OneGpu {
  NodeFacts facts = Node({Gpu(kGpu, 17), Audio("0000:3b:00.1", 17)});
  PciDevice& gpu = Find(facts, kGpu);
  PciDevice& audio = Find(facts, "0000:3b:00.1");

  std::string Refusals() const { return Codes(DefaultPlan(facts).refusals); }
  std::string Warnings() const { return Codes(DefaultPlan(facts).warnings); }
};

TEST_CASE("a sound GPU gives neither refusals nor warnings", "[iommu]") {
  const OneGpu node;
  CHECK(node.Refusals().empty());
  CHECK(node.Warnings().empty());
}

TEST_CASE("iommu-off: said with the reason, besides no-iommu-group", "[iommu]") {
  NodeFacts facts = NodeWithoutIommu({Gpu(kGpu, 17)});
  facts.iommu.evidence = {"no PCI function has a group", "the command line says intel_iommu=off"};
  const Plan plan = DefaultPlan(facts);
  CHECK(Codes(plan.refusals) == "iommu-off 0000:3b:00.0\nno-iommu-group 0000:3b:00.0");
  CHECK(plan.refusals[0].text ==
        "no IOMMU is on, so 0000:3b:00.0 (10de:2330, driver nvidia) cannot be given away: the "
        "command line says intel_iommu=off");
  CHECK(GroupOf(plan, std::nullopt).verdict == Verdict::kRefused);
  CHECK(GroupOf(plan, std::nullopt).actions.empty());
}

TEST_CASE("no-iommu-group: a device that the IOMMU of the node does not serve", "[iommu]") {
  const Plan plan = DefaultPlan(Node({Gpu(kGpu, -1), Gpu("0000:5e:00.0", 18)}));
  CHECK(Codes(plan.refusals) == "no-iommu-group 0000:3b:00.0");
  CHECK(GroupOf(plan, 18).verdict == Verdict::kBind);
  CHECK_FALSE(plan.groups.back().group);  // those without a group come last
}

TEST_CASE("noiommu: a group that nothing isolates is not given away", "[iommu]") {
  OneGpu node;
  node.facts.groups.at(17).noiommu = true;
  CHECK(node.Refusals() == "noiommu 0000:3b:00.0");
}

TEST_CASE("POWR-03: a card whose memory the boot console holds is refused, bound or not",
          "[iommu]") {
  OneGpu node;
  node.facts.frame_buffers[At(kGpu)] = {"has its memory held by efifb", "video=efifb:off"};
  CHECK(node.Refusals() == "in-use-display 0000:3b:00.0");
  CHECK(DefaultPlan(node.facts).refusals[0].remedy == "video=efifb:off");
  node.gpu.driver = "vfio-pci";
  node.audio.driver = "vfio-pci";
  CHECK(node.Refusals() == "in-use-display 0000:3b:00.0");
}

TEST_CASE("probe-refused: what vfio-pci's denylist has is refused before the kernel does it",
          "[iommu]") {
  OneGpu node;
  node.gpu.vendor = 0x8086;
  node.gpu.device = 0x37c8;
  Policy policy;
  policy.resources = {{.name = "intel.com/qat", .select = {{.vendor = uint16_t{0x8086}}}}};
  const auto refusals = [&] { return Codes(MakePlan(node.facts, policy, {}).refusals); };
  CHECK(refusals() == "probe-refused 0000:3b:00.0");
  node.facts.iommu.denylist_disabled = true;
  CHECK(refusals().empty());
}

TEST_CASE("driver-changed: a driver whose name cannot be told is not unbound", "[iommu]") {
  OneGpu node;
  node.audio.driver = "snd?hda";
  CHECK(node.Refusals() == "driver-changed 0000:3b:00.1");
}

TEST_CASE("MISC-02: what is plugged in from outside is taken only by its very address", "[iommu]") {
  OneGpu node;
  node.gpu.removable = true;
  CHECK(node.Refusals() == "excluded 0000:3b:00.0");
  CHECK(DefaultPlan(node.facts).resources.empty());
  Policy policy = DefaultPolicy();
  policy.resources[0].select = {{.address = At(kGpu)}};
  CHECK(MakePlan(node.facts, policy, TestNames()).refusals.empty());
}

TEST_CASE("boot-display: the adapter that the firmware started on is kept", "[iommu]") {
  OneGpu node;
  node.gpu.boot_vga = Fact<bool>(true);
  CHECK(node.Refusals() == "boot-display 0000:3b:00.0");
  SECTION("another one that could be it is not") {
    node.gpu.boot_vga = Fact<bool>(false);
    CHECK(node.Refusals().empty());
  }
  SECTION("one that is on vfio-pci already is") {
    node.gpu.driver = "vfio-pci";
    CHECK(node.Refusals().empty());
  }
  SECTION("an overruled guard is a warning that says so") {
    Policy policy = DefaultPolicy();
    policy.guard_override = {At(kGpu)};
    const Plan plan = MakePlan(node.facts, policy, {});
    CHECK(plan.refusals.empty());
    CHECK(Codes(plan.warnings) == "boot-display 0000:3b:00.0");
    CHECK(plan.warnings[0].text.ends_with("overruled by guard.override"));
    CHECK(GroupOf(plan, 17).verdict == Verdict::kBind);
  }
  SECTION("the override of another address does not count") {
    Policy policy = DefaultPolicy();
    policy.guard_override = {At("0000:3b:00.1")};
    CHECK(Codes(MakePlan(node.facts, policy, {}).refusals) == "boot-display 0000:3b:00.0");
  }
}

TEST_CASE("pf-has-vfs: vfio-pci takes no physical function with VFs", "[iommu]") {
  OneGpu node;
  node.gpu.virtfns = {At("0000:3b:00.2"), At("0000:3b:00.3")};
  const Plan plan = DefaultPlan(node.facts);
  CHECK(Codes(plan.refusals) == "pf-has-vfs 0000:3b:00.0");
  CHECK(plan.refusals[0].remedy.starts_with(
      "echo 0 > /sys/bus/pci/devices/0000:3b:00.0/sriov_numvfs"));
}

TEST_CASE("vf-needs-opt-in: a VF that is named by its address is refused", "[iommu]") {
  const NodeFacts facts = Node({Vf("0000:3b:00.2", 18, kGpu)});
  Policy policy = DefaultPolicy();
  policy.resources[0].select = {{.address = At("0000:3b:00.2")}};
  const Plan plan = MakePlan(facts, policy, {});
  CHECK(Codes(plan.refusals) == "vf-needs-opt-in 0000:3b:00.2");
  CHECK(plan.refusals[0].text.find("virtual function of 0000:3b:00.0") != std::string::npos);
}

TEST_CASE("override-unsupported: a member without driver_override cannot be bound", "[iommu]") {
  OneGpu node;
  node.audio.has_override = false;
  CHECK(node.Refusals() == "override-unsupported 0000:3b:00.1");
  node.audio.driver = "vfio-pci";
  CHECK(node.Refusals().empty());
}

TEST_CASE("rmrr-direct: memory of the firmware's own hinders the group", "[iommu]") {
  OneGpu node;
  node.facts.groups.at(17).direct_reserved = true;
  CHECK(node.Refusals() == "rmrr-direct 0000:3b:00.0");
}

TEST_CASE("config-unreadable: a member that reads all ones is dead", "[iommu]") {
  OneGpu node;
  node.audio.config.all_ones = true;
  CHECK(node.Refusals() == "config-unreadable 0000:3b:00.1");
}

TEST_CASE("a dead device that nobody selected hinders nobody", "[iommu]") {
  NodeFacts facts = Node({Gpu(kGpu, 17), Nvme("0000:3c:00.0", 17, "")});
  Find(facts, "0000:3c:00.0").config.all_ones = true;
  CHECK(DefaultPlan(facts).refusals.empty());
}

TEST_CASE("power-d3cold: asleep and not answering, but not asleep alone", "[iommu]") {
  OneGpu node;
  node.gpu.power_state = Fact<std::string>("D3cold");
  CHECK(node.Refusals().empty());
  node.gpu.config.all_ones = true;
  CHECK(node.Refusals() == "power-d3cold 0000:3b:00.0\nconfig-unreadable 0000:3b:00.0");
  CHECK(DefaultPlan(node.facts)
            .refusals[0]
            .remedy.find("/sys/bus/pci/devices/0000:3b:00.0/d3cold_allowed") != std::string::npos);
}

TEST_CASE("address-too-wide: KubeVirt reads domains of four digits only", "[iommu]") {
  const auto [address, refused] = GENERATE(table<std::string, bool>(
      {{"ffff:01:00.0", false}, {"10000:01:00.0", true}, {"deadbeef:01:00.0", true}}));
  CAPTURE(address);
  const Plan plan = DefaultPlan(Node({Gpu(address, 17)}));
  CHECK((Codes(plan.refusals) == "address-too-wide " + address) == refused);
}

TEST_CASE("no-reset: a GPU that the kernel cannot reset is a warning", "[iommu]") {
  OneGpu node;
  node.gpu.reset_method = Fact<std::string>("");
  CHECK(node.Warnings() == "no-reset 0000:3b:00.0");
  CHECK(node.Refusals().empty());
  node.gpu.reset_method = Fact<std::string>::Absent();
  CHECK(node.Warnings().empty());
  node.gpu.reset_method = Fact<std::string>("flr bus");
  node.audio.reset_method = Fact<std::string>("");
  CHECK(node.Warnings().empty());
}

TEST_CASE("shared-bus-reset: the bus has a member of another group", "[iommu]") {
  NodeFacts facts = Node({Gpu(kGpu, 17), Nvme("0000:3b:01.0", 18)});
  PciDevice& gpu = Find(facts, kGpu);
  gpu.reset_method = Fact<std::string>("bus");
  CHECK(Codes(DefaultPlan(facts).warnings) == "shared-bus-reset 0000:3b:00.0");
  SECTION("not where there is another way") {
    gpu.reset_method = Fact<std::string>("flr bus");
    CHECK(DefaultPlan(facts).warnings.empty());
  }
  SECTION("not where all of the bus is in the group") {
    gpu.group = 18;
    CHECK(DefaultPlan(facts).warnings.empty());
  }
  SECTION("not where the other is on another bus or domain") {
    gpu.address.domain = 1;
    std::swap(facts.devices[0], facts.devices[1]);
    CHECK(DefaultPlan(facts).warnings.empty());
  }
}

TEST_CASE("vfio-driver-missing: neither loaded nor installed", "[iommu]") {
  OneGpu node;
  node.facts.drivers.erase("vfio-pci");
  node.facts.modules.vfio_pci_installed = false;
  CHECK(node.Refusals() == "vfio-driver-missing 0000:3b:00.0\nvfio-driver-missing 0000:3b:00.1");
}

TEST_CASE("what is refused is refused for all its reasons, and nothing is done", "[iommu]") {
  NodeFacts facts = Node({Gpu(kGpu, 17), Nvme("0000:3c:00.0", 17)});
  facts.groups.at(17) = {.noiommu = true, .direct_reserved = true};
  facts.drivers.erase("vfio-pci");
  facts.modules = {};
  PciDevice& gpu = Find(facts, kGpu);
  gpu.virtfns = {At("0000:3b:00.4")};
  gpu.boot_vga = Fact<bool>(true);
  gpu.has_override = false;
  gpu.config.all_ones = true;
  gpu.power_state = Fact<std::string>("D3cold");
  const Plan plan = DefaultPlan(facts);
  CHECK(Codes(plan.refusals) ==
        "noiommu 0000:3b:00.0\npf-has-vfs 0000:3b:00.0\nboot-display 0000:3b:00.0\n"
        "override-unsupported 0000:3b:00.0\nrmrr-direct 0000:3b:00.0\n"
        "power-d3cold 0000:3b:00.0\nconfig-unreadable 0000:3b:00.0\n"
        "foreign-member 0000:3c:00.0\nvfio-driver-missing 0000:3b:00.0");
  CHECK(GroupOf(plan, 17).refusals == plan.refusals);
  CHECK(GroupOf(plan, 17).actions.empty());
  CHECK(Roles(GroupOf(plan, 17)) == "0000:3b:00.0 primary none\n0000:3c:00.0 foreign none");
  for (const Refusal& refusal : plan.refusals) {
    CHECK(refusal.group == 17);
    CHECK_FALSE(refusal.text.empty());
    CHECK(refusal.remedy.find("<address>") == std::string::npos);
    CHECK_FALSE(refusal.remedy.empty());
  }
}

}  // namespace
}  // namespace vfio_agent
