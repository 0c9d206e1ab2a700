#include "sysfs/node_facts.h"

#include <catch2/catch.hpp>

#include "sysfs/device/config_space.h"
#include "test/support/facts.h"
#include "test/support/fake_tree.h"

namespace vfio_agent {
namespace {

TEST_CASE("a tree without PCI devices to list is refused", "[sysfs]") {
  FakeTree fake;
  fake.Remove("sys/bus");
  const Tree tree = fake.Open();
  ConfigReader config(tree);
  const absl::Status status = TakeNodeFacts(tree, config, {}).status();
  CHECK(absl::IsFailedPrecondition(status));
  CHECK(std::string(status.message()).find(fake.root().string()) != std::string::npos);
}

TEST_CASE("a machine without a PCI function is no error", "[sysfs]") {
  const NodeFacts facts = FakeTree().Facts();
  CHECK(facts.devices.empty());
  CHECK(facts.iommu.state == IommuState::kOff);
}

TEST_CASE("ADDR-02: wide domains are read, junk is skipped with a note, order is numeric",
          "[sysfs]") {
  FakeTree fake;
  fake.Add({.address = "10001:80:05.0", .vendor = "0x8086", .device = "0x352c"});
  fake.Add({.address = "10001:8a:00.0", .vendor = "0x1344"}).Add({.address = "0000:01:00.0"});
  fake.Add({.address = "2000:01:00.0"});
  fake.Write("sys/bus/pci/devices/foo/vendor", "0x10de\n");
  const NodeFacts facts = fake.Facts();
  std::string order;
  for (const PciDevice& device : facts.devices) order += device.address.ToString() + " ";
  CHECK(order == "0000:01:00.0 2000:01:00.0 10001:80:05.0 10001:8a:00.0 ");
  CHECK(FindDevice(facts, At("10001:80:05.0"))->device == 0x352c);
  CHECK(facts.skipped ==
        std::vector<std::string>{
            "sys/bus/pci/devices/foo: not a PCI address (want dddd:bb:dd.f): 'foo'"});
}

TEST_CASE("domains of five to eight digits keep all their digits and their config space",
          "[sysfs]") {
  const std::string address =
      GENERATE("10000:01:00.0", "ab12cd:01:00.0", "1234567:01:00.0", "7fffffff:01:00.0");
  CAPTURE(address);
  FakeTree fake;
  NodeFacts facts = fake.Add({.address = address, .group = 3}).Facts();
  CHECK(Find(facts, address).group == 3);
  CHECK(Find(facts, address).config.pcie_type.is(PcieType::kEndpoint));
  CHECK(Find(facts, address).errors.empty());
}

TEST_CASE("a device is found by its address only", "[sysfs]") {
  const NodeFacts facts = Node({Gpu("0000:3b:00.0", 1), Gpu("0000:5e:00.0", 2)});
  REQUIRE(FindDevice(facts, At("0000:5e:00.0")) != nullptr);
  CHECK(FindDevice(facts, At("0000:5e:00.0"))->group == 2);
  CHECK(FindDevice(facts, At("0000:4a:00.0")) == nullptr);
  CHECK(FindDevice(facts, At("0000:ff:00.0")) == nullptr);
  CHECK(FindDevice({}, At("0000:3b:00.0")) == nullptr);
}

TEST_CASE("a group of noiommu mode is known by its name and is no IOMMU", "[sysfs]") {
  FakeTree fake;
  fake.Add({.address = "0000:01:00.0", .driver = "vfio-pci", .group = 0});
  CHECK(fake.Facts().iommu.state == IommuState::kOn);
  fake.Write("sys/kernel/iommu_groups/0/name", "vfio-noiommu\n");
  const NodeFacts facts = fake.Facts();
  CHECK(facts.groups.at(0).noiommu);
  CHECK(facts.iommu.state == IommuState::kNoIommu);
}

TEST_CASE("one translated group beside noiommu groups means an IOMMU is on", "[sysfs]") {
  FakeTree fake;
  fake.Add({.address = "0000:01:00.0", .group = 0}).Add({.address = "0000:02:00.0", .group = 1});
  fake.Write("sys/kernel/iommu_groups/0/name", "vfio-noiommu\n");
  CHECK(fake.Facts().iommu.state == IommuState::kOn);
}

TEST_CASE("only a reserved region of type direct is the firmware's own", "[sysfs]") {
  const auto [text, direct] = GENERATE(table<std::string, bool>({
      {"0x00000000000a0000 0x00000000000bffff direct\n0x00000000fee00000 0x00000000feefffff msi\n",
       true},
      {"0x00000000fee00000 0x00000000feefffff msi\n0x00000000000a0000 0x00000000000bffff direct",
       true},
      {"0x00000000000a0000 0x00000000000bffff direct-relaxable\n", false},
      {"0x01 0x02 direct-relaxable\n0x03 0x04 direct\n", true},
      {"0x00000000fee00000 0x00000000feefffff msi\n", false},
      {"", false},
  }));
  CAPTURE(text);
  FakeTree fake;
  fake.Add({.address = "0000:01:00.0", .group = 7});
  fake.Write("sys/kernel/iommu_groups/7/reserved_regions", text);
  CHECK(fake.Facts().groups.at(7).direct_reserved == direct);
}

TEST_CASE("drivers and vfio nodes are listed, device nodes below their directory", "[sysfs]") {
  FakeTree fake;
  fake.Driver("nvidia").Node("vfio").Node("26").Node("noiommu-0").Node("devices/vfio0");
  const NodeFacts facts = fake.Facts();
  CHECK(facts.drivers == std::set<std::string>{"nvidia", "vfio-pci"});
  CHECK(facts.vfio_nodes == std::set<std::string>{"vfio", "26", "noiommu-0", "devices/vfio0"});
}

TEST_CASE("modules are taken over as they were read before", "[sysfs]") {
  const FakeTree fake;
  const Tree tree = fake.Open();
  ConfigReader config(tree);
  const ModuleFacts modules{.release = "6.1.0", .vfio_pci_installed = true};
  CHECK(TakeNodeFacts(tree, config, modules)->modules == modules);
}

TEST_CASE("equal trees give equal facts and reading changes nothing", "[sysfs]") {
  FakeTree a, b;
  for (FakeTree* fake : {&a, &b}) {
    fake->Add({.address = "0000:01:00.0", .driver = "nvidia", .group = 1});
  }
  CHECK(a.Facts() == b.Facts());
  CHECK(a.Facts() == a.Facts());
  b.Attribute("0000:01:00.0", "numa_node", "1");
  CHECK_FALSE(a.Facts() == b.Facts());
}

}  // namespace
}  // namespace vfio_agent
