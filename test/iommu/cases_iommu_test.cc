// Reported failures about IOMMU and groups, with what is right; read from trees.
#include <catch2/catch.hpp>

#include "iommu/plan/plan.h"
#include "test/support/facts.h"
#include "test/support/fake_tree.h"

namespace vfio_agent {
namespace {

TEST_CASE("IOMMU-02: the device's own link decides, not the command line", "[iommu]") {
  FakeTree fake;
  fake.Write("proc/cmdline", "intel_iommu=on iommu=pt\n").Write("sys/class/iommu/dmar0/x", "");
  fake.Add({.address = "0000:03:00.0", .device = "0x2204", .class_code = "0x030000"});
  fake.Add({.address = "0000:04:00.0", .group = 20});
  const Plan plan = DefaultPlan(fake.Facts());
  CHECK(plan.iommu.state == IommuState::kOn);
  CHECK(Codes(plan.refusals) == "no-iommu-group 0000:03:00.0");
  CHECK(GroupOf(plan, 20).verdict == Verdict::kBind);
}

TEST_CASE("IOMMU-04: a board whose PCI functions have no IOMMU is refused before any write",
          "[iommu]") {
  FakeTree fake;
  fake.Add({.address = "0001:01:00.0",
            .device = "0x1c82",
            .class_code = "0x030000",
            .driver = "nouveau"});
  fake.Write("sys/class/iommu/1000005280.iommu/x", "");
  const Plan plan = DefaultPlan(fake.Facts());
  CHECK(plan.iommu.state == IommuState::kOff);
  CHECK(Codes(plan.refusals) == "iommu-off 0001:01:00.0\nno-iommu-group 0001:01:00.0");
  CHECK(GroupOf(plan, std::nullopt).actions.empty());
}

TEST_CASE("IOMMU-06: a noiommu group is seen as such and is not advertised", "[iommu]") {
  FakeTree fake;
  fake.Add({.address = "0000:01:00.0", .driver = "vfio-pci", .group = 0});
  fake.Write("sys/kernel/iommu_groups/0/name", "vfio-noiommu\n").Node("noiommu-0");
  fake.Write("sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "Y\n");
  const Plan plan = DefaultPlan(fake.Facts());
  CHECK(plan.iommu.state == IommuState::kNoIommu);
  CHECK(Codes(plan.refusals) == "noiommu 0000:01:00.0");
  CHECK(plan.resources.at(0).units.at(0).state == UnitState::kRefused);
}

TEST_CASE("IOMMU-08: a group that got new members is judged by what it has now", "[iommu]") {
  FakeTree fake;
  fake.Add({.address = "0000:01:00.0", .driver = "nvidia", .group = 11});
  fake.Add({.address = "0000:01:00.1", .class_code = "0x040300", .group = 11});
  CHECK(GroupOf(DefaultPlan(fake.Facts()), 11).verdict == Verdict::kBind);
  fake.Add({.address = "0000:00:01.1",
            .vendor = "0x1022",
            .class_code = "0x060400",
            .group = 11,
            .config = PortConfig(PcieType::kRootPort)});
  fake.Add({.address = "0000:02:00.0",
            .vendor = "0x144d",
            .class_code = "0x010802",
            .driver = "nvme",
            .group = 11});
  const Plan plan = DefaultPlan(fake.Facts());
  CHECK(Codes(plan.refusals) == "foreign-member 0000:02:00.0");
  CHECK(GroupOf(plan, 11).members.size() == 4);
}

TEST_CASE("MISC-02: a GPU that is plugged in later is in the next plan, and out again", "[iommu]") {
  FakeTree fake;
  fake.Add({.address = "0000:00:07.0",
            .vendor = "0x8086",
            .class_code = "0x060400",
            .group = 4,
            .config = PortConfig(PcieType::kRootPort, kAcsOn)});
  CHECK(DefaultPlan(fake.Facts()).resources.empty());
  fake.Add({.address = "0000:2d:00.0", .group = 20, .parent = "0000:00:07.0"});
  CHECK(DefaultPlan(fake.Facts()).resources.size() == 1);
  fake.Remove("sys/bus/pci/devices/0000:2d:00.0");
  CHECK(DefaultPlan(fake.Facts()).resources.empty());
}

}  // namespace
}  // namespace vfio_agent
