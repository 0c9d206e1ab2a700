#include "sysfs/host/iommu_facts.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "absl/strings/str_join.h"
#include "test/support/fake_tree.h"

namespace vfio_agent {
namespace {

std::string Evidence(const IommuFacts& facts) { return absl::StrJoin(facts.evidence, "; "); }

bool Says(const IommuFacts& facts, const std::string& text) {
  return Evidence(facts).find(text) != std::string::npos;
}

TEST_CASE("the kind of IOMMU is told by the name that its driver gives it", "[sysfs]") {
  const auto [name, kind] = GENERATE(table<std::string, IommuKind>({
      {"dmar0", IommuKind::kIntel},
      {"ivhd0", IommuKind::kAmd},
      {"smmu3.0x0000000009050000", IommuKind::kArmSmmu},
      {"smmu.0x000000002b400000", IommuKind::kArmSmmu},
      {"pviommu.0", IommuKind::kOther},
  }));
  CAPTURE(name);
  FakeTree fake;
  fake.Write("sys/class/iommu/" + name + "/uevent", "");
  const IommuFacts facts = ReadIommuFacts(fake.Open(), 3, 0);
  CHECK(facts.state == IommuState::kOn);
  CHECK(facts.kind == kind);
  CHECK(Evidence(facts) == "/sys/class/iommu has " + name + "; PCI functions have a group");
}

// Its driver names it after the PCI function that it is (virtio_bus_name()).
TEST_CASE("a virtio IOMMU is known by the PCI function that it is named after", "[sysfs]") {
  FakeTree fake;
  fake.Add({.address = "0000:00:03.0", .vendor = "0x1af4", .device = "0x1057"});
  fake.Add({.address = "0000:00:04.0", .vendor = "0x1efd", .device = "0xedf1"});
  fake.Write("sys/class/iommu/0000:00:03.0/uevent", "");
  CHECK(ReadIommuFacts(fake.Open(), 3, 0).kind == IommuKind::kVirtio);
  fake.Remove("sys/class/iommu").Write("sys/class/iommu/0000:00:04.0/uevent", "");
  CHECK(ReadIommuFacts(fake.Open(), 3, 0).kind == IommuKind::kOther);
}

TEST_CASE("group links without a named IOMMU are an IOMMU of another kind", "[sysfs]") {
  const FakeTree fake;
  const IommuFacts facts = ReadIommuFacts(fake.Open(), 1, 0);
  CHECK(facts.state == IommuState::kOn);
  CHECK(facts.kind == IommuKind::kOther);
}

TEST_CASE("an IOMMU that serves no PCI function is off", "[sysfs]") {
  FakeTree fake;
  fake.Write("sys/class/iommu/dmar0/uevent", "").Write("proc/cmdline", "intel_iommu=on\n");
  const IommuFacts facts = ReadIommuFacts(fake.Open(), 0, 0);
  CHECK(facts.state == IommuState::kOff);
  CHECK(Says(facts, "no PCI function has a group"));
}

TEST_CASE("off by the command line is explained with the words that did it", "[sysfs]") {
  const auto [line, text] = GENERATE(table<std::string, std::string>({
      {"quiet intel_iommu=off", "the kernel command line says intel_iommu=off"},
      {"amd_iommu=off quiet", "the kernel command line says amd_iommu=off"},
      {"iommu=off", "the kernel command line says iommu=off"},
      {"quiet", "the kernel command line has no intel_iommu=on"},
      {"xintel_iommu=offx", "the kernel command line has no intel_iommu=on"},
  }));
  CAPTURE(line);
  FakeTree fake;
  const IommuFacts facts = ReadIommuFacts(fake.Write("proc/cmdline", line + "\n").Open(), 0, 0);
  CHECK(facts.state == IommuState::kOff);
  CHECK(facts.kind == IommuKind::kNone);
  CHECK(Says(facts, text));
  CHECK(facts.command_line == line);
}

TEST_CASE("the command line is never the verdict", "[sysfs]") {
  FakeTree fake;
  fake.Write("proc/cmdline", "intel_iommu=off\n");
  CHECK(ReadIommuFacts(fake.Open(), 1, 0).state == IommuState::kOn);
  fake.Write("proc/cmdline", "intel_iommu=on iommu=pt\n");
  const IommuFacts off = ReadIommuFacts(fake.Open(), 0, 0);
  CHECK(off.state == IommuState::kOff);
  CHECK_FALSE(Says(off, "has no intel_iommu=on"));
}

TEST_CASE("tables of the firmware never judge", "[sysfs]") {
  FakeTree fake;
  fake.Write("sys/firmware/acpi/tables/DMAR", "DMAR");
  const IommuFacts with = ReadIommuFacts(fake.Open(), 0, 0);
  fake.Remove("sys/firmware");
  CHECK(with == ReadIommuFacts(fake.Open(), 0, 0));
  CHECK(with.state == IommuState::kOff);
}

TEST_CASE("groups of noiommu mode alone are no IOMMU", "[sysfs]") {
  FakeTree fake;
  const char* const unsafe = "sys/module/vfio/parameters/enable_unsafe_noiommu_mode";
  const IommuFacts facts = ReadIommuFacts(fake.Write(unsafe, "Y\n").Open(), 0, 2);
  CHECK(facts.state == IommuState::kNoIommu);
  CHECK(facts.unsafe_noiommu);
  CHECK(Says(facts, "2 groups are of noiommu mode"));
  CHECK(ReadIommuFacts(fake.Open(), 1, 2).state == IommuState::kOn);
  CHECK_FALSE(ReadIommuFacts(fake.Write(unsafe, "N\n").Open(), 0, 2).unsafe_noiommu);
}

TEST_CASE("switches of the vfio modules are off unless the kernel says that they are on",
          "[sysfs]") {
  FakeTree fake;
  const IommuFacts none = ReadIommuFacts(fake.Open(), 1, 0);
  CHECK_FALSE(none.unsafe_interrupts);
  CHECK_FALSE(none.denylist_disabled);
  fake.Write("sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts", "Y\n");
  fake.Write("sys/module/vfio_pci/parameters/disable_denylist", "N\n");
  CHECK(ReadIommuFacts(fake.Open(), 1, 0).unsafe_interrupts);
  CHECK_FALSE(ReadIommuFacts(fake.Open(), 1, 0).denylist_disabled);
  fake.Write("sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts", "N\n");
  fake.Write("sys/module/vfio_pci/parameters/disable_denylist", "Y\n");
  CHECK_FALSE(ReadIommuFacts(fake.Open(), 1, 0).unsafe_interrupts);
  CHECK(ReadIommuFacts(fake.Open(), 1, 0).denylist_disabled);
}

TEST_CASE("where the devices themselves cannot be seen the state is unknown", "[sysfs]") {
  FakeTree fake;
  fake.Remove("sys/bus/pci/devices");
  CHECK(ReadIommuFacts(fake.Open(), 0, 0).state == IommuState::kUnknown);
}

TEST_CASE("a tree without the kernel's own places for groups and IOMMUs does not say off",
          "[sysfs]") {
  FakeTree fake;
  fake.Remove("sys/kernel/iommu_groups").Write("proc/cmdline", "intel_iommu=off\n");
  const IommuFacts facts = ReadIommuFacts(fake.Open(), 0, 0);
  CHECK(facts.state == IommuState::kUnknown);
  CHECK(Says(facts, "neither /sys/kernel/iommu_groups nor /sys/class/iommu is there"));
  CHECK(ReadIommuFacts(fake.Open(), 1, 0).state == IommuState::kOn);
  fake.Write("sys/class/iommu/.keep", "");
  CHECK(ReadIommuFacts(fake.Open(), 0, 0).state == IommuState::kOff);
}

TEST_CASE("under a hypervisor the evidence names it, and not the firmware", "[sysfs]") {
  FakeTree fake;
  fake.Write("proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu vmx\n");
  CHECK_FALSE(ReadIommuFacts(fake.Open(), 0, 0).is_guest);
  fake.Write("proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu vmx hypervisor\n");
  const IommuFacts facts = ReadIommuFacts(fake.Open(), 0, 0);
  CHECK(facts.is_guest);
  CHECK(Says(facts, "this node is a virtual machine"));
  CHECK_FALSE(Says(facts, "firmware"));
  CHECK_FALSE(ReadIommuFacts(fake.Open(), 1, 0).is_guest);  // not asked where one is on
}

TEST_CASE("the ACS override parameter is noticed", "[sysfs]") {
  FakeTree fake;
  fake.Write("proc/cmdline", "quiet pcie_acs_override=downstream,multifunction\n");
  CHECK(ReadIommuFacts(fake.Open(), 1, 0).acs_override_parameter);
  CHECK_FALSE(
      ReadIommuFacts(fake.Write("proc/cmdline", "quiet\n").Open(), 1, 0).acs_override_parameter);
}

TEST_CASE("a command line longer than a page is read whole", "[sysfs]") {
  FakeTree fake;
  fake.Write("proc/cmdline", std::string(6000, 'x') + " pcie_acs_override=downstream\n");
  CHECK(ReadIommuFacts(fake.Open(), 1, 0).acs_override_parameter);
}

}  // namespace
}  // namespace vfio_agent
