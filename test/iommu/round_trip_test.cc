// Facts, plan, apply, facts again: a plan that was carried out leaves nothing to plan.
#include <catch2/catch.hpp>

#include "iommu/apply.h"
#include "iommu/plan/release.h"
#include "test/support/facts.h"
#include "test/support/fake_kernel.h"

namespace vfio_agent {
namespace {

constexpr char kPort[] = "0000:00:01.0";
constexpr char kGpu[] = "0000:3b:00.0";
constexpr char kAudio[] = "0000:3b:00.1";

// A card below a port that does not isolate: all three are one group.
struct Machine {
  FakeTree fake;
  FakeKernel kernel{fake};

  Machine() {
    fake.Add({.address = kPort,
              .class_code = "0x060400",
              .driver = "pcieport",
              .group = 17,
              .config = PortConfig(PcieType::kRootPort)});
    fake.Add({.address = kGpu,
              .driver = "nvidia",
              .group = 17,
              .parent = kPort,
              .config = EndpointConfig(true)});
    fake.Add({.address = kAudio,
              .device = "0x22ba",
              .class_code = "0x040300",
              .driver = "snd_hda_intel",
              .group = 17,
              .parent = kPort,
              .config = EndpointConfig(true)});
    fake.Node("vfio");
    kernel.HostDriver(kGpu, "nvidia").HostDriver(kAudio, "snd_hda_intel");
  }
  Outcome Run(const std::vector<Action>& actions) {
    const Tree tree = fake.Open();
    return Apply(actions, tree, kernel, absl::Seconds(10), [](size_t) { return absl::OkStatus(); });
  }
  Outcome Bind() { return Run(GroupOf(DefaultPlan(fake.Facts()), 17).actions); }
  Records Noted() const {
    std::vector<std::pair<std::string, std::string>> drivers;
    for (const PciDevice& device : fake.Facts().devices) {
      drivers.emplace_back(device.address.ToString(), device.driver.value_or(""));
    }
    return TakenFrom(drivers);
  }
  std::string Drivers() const {
    std::string text;
    for (const PciDevice& device : fake.Facts().devices) {
      text += device.driver.value_or("-") + " ";
    }
    return text;
  }
};

TEST_CASE("once a plan is carried out, the next one is empty and the unit ready", "[iommu]") {
  Machine machine;
  REQUIRE(machine.Bind().status.ok());
  CHECK(machine.Drivers() == "pcieport vfio-pci vfio-pci ");
  const Plan plan = DefaultPlan(machine.fake.Facts());
  CHECK(GroupOf(plan, 17).verdict == Verdict::kBound);
  CHECK(GroupOf(plan, 17).actions.empty());
  CHECK(plan.refusals.empty());
  CHECK(plan.resources.at(0).units.at(0).state == UnitState::kReady);
}

TEST_CASE("after a release the node is as it was, companions and overrides too", "[iommu]") {
  Machine machine;
  const NodeFacts before = machine.fake.Facts();
  const Records records = machine.Noted();
  REQUIRE(machine.Bind().status.ok());
  const auto releases = PlanRelease(machine.fake.Facts(), Asked(records), {At(kGpu)});
  REQUIRE(releases.size() == 1);
  REQUIRE(machine.Run(releases[0].actions).status.ok());
  CHECK(machine.Drivers() == "pcieport nvidia snd_hda_intel ");
  CHECK(machine.fake.Facts() == before);
  CHECK(machine.fake.Read(FakeTree::Of(kGpu, "driver_override")) == "(null)\n");
  CHECK(machine.fake.Read(FakeTree::Of(kAudio, "driver_override")) == "(null)\n");
}

TEST_CASE("a release without notes finds the drivers that the kernel knows", "[iommu]") {
  Machine machine;
  REQUIRE(machine.Bind().status.ok());
  const auto releases = PlanRelease(machine.fake.Facts(), Asked(), {At(kGpu), At(kAudio)});
  REQUIRE(machine.Run(releases.at(0).actions).status.ok());
  CHECK(machine.Drivers() == "pcieport nvidia snd_hda_intel ");
}

TEST_CASE("a bind that fails half-way is undone by planning again", "[iommu]") {
  Machine machine;
  const NodeFacts before = machine.fake.Facts();
  const Records records = machine.Noted();
  machine.kernel.Fails("sys/bus/pci/drivers/snd_hda_intel/unbind", 16);
  REQUIRE_FALSE(machine.Bind().status.ok());
  CHECK(machine.Drivers() == "pcieport vfio-pci snd_hda_intel ");
  const auto undo = PlanUndo(machine.fake.Facts(), records, {At(kGpu), At(kAudio)});
  REQUIRE(machine.Run(undo).status.ok());
  CHECK(machine.fake.Facts() == before);
  CHECK(machine.fake.Read(FakeTree::Of(kAudio, "driver_override")) == "(null)\n");
}

TEST_CASE("where vfio-pci is loaded on the way the group is bound all the same", "[iommu]") {
  Machine machine;
  machine.fake.Remove("sys/bus/pci/drivers/vfio-pci");
  machine.fake.Write("proc/sys/kernel/osrelease", "6.1.0\n");
  machine.fake.Write("lib/modules/6.1.0/modules.dep", "kernel/drivers/vfio/pci/vfio-pci.ko:\n");
  machine.kernel.Installs("vfio-pci", "vfio-pci");
  REQUIRE(machine.Bind().status.ok());
  CHECK(machine.kernel.log().front() == "modprobe vfio-pci");
  CHECK(machine.Drivers() == "pcieport vfio-pci vfio-pci ");
}

TEST_CASE("BIND-07: an override that was left behind is finished like any bind", "[iommu]") {
  Machine machine;
  REQUIRE(machine.Run({SetOverride{At(kGpu), "vfio-pci"}, Unbind{At(kGpu), "nvidia"}}).status.ok());
  CHECK(machine.Drivers() == "pcieport - snd_hda_intel ");
  REQUIRE(machine.Bind().status.ok());
  CHECK(machine.Drivers() == "pcieport vfio-pci vfio-pci ");
}

TEST_CASE("BIND-09: a freshly booted node is bound from nothing but its facts", "[iommu]") {
  FakeTree fake;
  fake.Add({.address = "0000:04:00.0",
            .device = "0x1c02",
            .class_code = "0x030000",
            .driver = "nouveau",
            .group = 9});
  fake.Add({.address = "0000:04:00.1",
            .device = "0x10f1",
            .class_code = "0x040300",
            .driver = "snd_hda_intel",
            .group = 9});
  FakeKernel kernel(fake);
  const Tree tree = fake.Open();
  const Plan plan = DefaultPlan(fake.Facts());
  REQUIRE(Apply(GroupOf(plan, 9).actions, tree, kernel, absl::Seconds(10), [](size_t) {
            return absl::OkStatus();
          }).status.ok());
  for (const PciDevice& device : fake.Facts().devices) CHECK(device.driver == "vfio-pci");
  CHECK(DefaultPlan(fake.Facts()).resources.at(0).units.size() == 1);
}

TEST_CASE("KUBE-02: devices that are bound already are served without a single write", "[iommu]") {
  FakeTree fake;
  fake.Node("vfio");
  for (int i = 0; i < 8; ++i) {
    fake.Add(
        {.address = "0000:" + std::to_string(10 + i) + ":00.0", .driver = "vfio-pci", .group = i});
    fake.Node(std::to_string(i));
  }
  const Plan plan = DefaultPlan(fake.Facts());
  REQUIRE(plan.resources.at(0).units.size() == 8);
  for (const Unit& unit : plan.resources[0].units) CHECK(unit.state == UnitState::kReady);
  for (const GroupPlan& group : plan.groups) CHECK(group.actions.empty());
}

}  // namespace
}  // namespace vfio_agent
