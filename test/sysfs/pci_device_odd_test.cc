// Trees that no sane kernel shows: truncated, non-numeric, looping, vanishing.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cerrno>

#include "sysfs/device/config_space.h"
#include "sysfs/device/pci_device.h"
#include "sysfs/status.h"
#include "test/support/facts.h"
#include "test/support/fake_tree.h"

namespace vfio_agent {
namespace {

constexpr char kOdd[] = "0000:3b:00.0";
constexpr char kGood[] = "0000:5e:00.0";

// The odd device; what stands beside it must come out as if it were alone.
PciDevice ReadOdd(const FakeTree& fake) {
  NodeFacts facts = fake.Facts();
  REQUIRE(facts.devices.size() == 2);
  const PciDevice& good = Find(facts, kGood);
  CHECK(good.errors.empty());
  CHECK(good.driver == "nvidia");
  CHECK(good.config.pcie_type.is(PcieType::kEndpoint));
  return Find(facts, kOdd);
}

struct OddTree : FakeTree {
  OddTree() {
    Add({.address = kOdd, .group = 1});
    Add({.address = kGood, .driver = "nvidia", .group = 2});
  }
};

// The whole of the one complaint.
std::string OnlyError(const PciDevice& device) {
  REQUIRE(device.errors.size() == 1);
  return device.errors.front();
}

TEST_CASE("an id that is no hexadecimal number of its width is reported and 0", "[sysfs]") {
  const std::string text =
      GENERATE("", "0x", "10de", "0x10d", "0x10de0", "0xghij", "0x10de ", "-0x10d", "0x10g0");
  CAPTURE(text);
  OddTree fake;
  fake.Attribute(kOdd, "vendor", text);
  const PciDevice device = ReadOdd(fake);
  CHECK(device.vendor == 0);
  CHECK(OnlyError(device) == "vendor: want 0x and 4 hex digits, found '" + text + "'");
}

TEST_CASE("an id that is not there is reported", "[sysfs]") {
  const std::string name = GENERATE("vendor", "device", "class");
  CAPTURE(name);
  OddTree fake;
  fake.Remove(FakeTree::Of(kOdd, name));
  CHECK(OnlyError(ReadOdd(fake)) == "vendor, device or class absent");
}

TEST_CASE("an optional id that is nonsense is unknown and not zero", "[sysfs]") {
  OddTree fake;
  fake.Attribute(kOdd, "revision", "a1").Remove(FakeTree::Of(kOdd, "subsystem_vendor"));
  const PciDevice device = ReadOdd(fake);
  CHECK(device.revision == Fact<uint8_t>::Unknown(EINVAL));
  CHECK(device.subsystem_vendor.absent());
  CHECK(OnlyError(device) == "revision: want 0x and 2 hex digits, found 'a1'");
}

TEST_CASE("a number that is none is unknown and reported", "[sysfs]") {
  const auto name = GENERATE("numa_node", "sriov_totalvfs", "boot_vga", "d3cold_allowed");
  const std::string text = GENERATE("", "one", "1x", "99999999999999999999", "0x1");
  CAPTURE(name, text);
  OddTree fake;
  fake.Attribute(kOdd, name, text);
  const PciDevice device = ReadOdd(fake);
  CHECK(OnlyError(device) == std::string(name) + ": want a number, found '" + text + "'");
  CHECK_FALSE(device.numa_node);
  CHECK_FALSE(device.sriov_total_vfs.known());
  CHECK_FALSE(device.boot_vga.known());
  CHECK_FALSE(device.d3cold_allowed.known());
}

TEST_CASE("an attribute longer than a page is unknown, never cut", "[sysfs]") {
  OddTree fake;
  fake.Attribute(kOdd, "power_state", std::string(5000, 'D'));
  const PciDevice device = ReadOdd(fake);
  CHECK(device.power_state.unknown());
  CHECK(OnlyError(device) == "too long: power_state");
}

TEST_CASE("an attribute that is a directory or a link is unknown", "[sysfs]") {
  OddTree fake;
  fake.Remove(FakeTree::Of(kOdd, "power_state")).Remove(FakeTree::Of(kOdd, "reset_method"));
  fake.Write(FakeTree::Of(kOdd, "power_state/x"), "");
  fake.Link(FakeTree::Of(kOdd, "reset_method"), "dev/vfio");
  const PciDevice device = ReadOdd(fake);
  CHECK(device.power_state.error() == EISDIR);
  CHECK(device.reset_method.error() == ELOOP);
  CHECK(device.errors.size() == 2);
}

TEST_CASE("a driver that is a file in place of a link is reported, and counts as a driver",
          "[sysfs]") {
  OddTree fake;
  fake.Write(FakeTree::Of(kOdd, "driver"), "nvidia");
  const PciDevice device = ReadOdd(fake);
  CHECK(device.driver == "?");
  CHECK(OnlyError(device).find("driver") != std::string::npos);
}

TEST_CASE("a driver's name cannot become a path or a command", "[sysfs]") {
  struct Row {
    const char* target;
    const char* name;
  };
  const Row row = GENERATE(Row{"../../evil; touch $(id)", "evil??touch???id?"}, Row{"../x/..", "?"},
                           Row{"../nvidia\nrm -rf", "nvidia?rm?-rf"}, Row{"../3w-9xxx", "3w-9xxx"});
  CAPTURE(row.target);
  OddTree fake;
  std::filesystem::create_symlink(row.target, fake.root() / FakeTree::Of(kOdd, "driver"));
  CHECK(ReadOdd(fake).driver == row.name);
}

TEST_CASE("a FIFO in place of an attribute does not hang the reader", "[sysfs]") {
  const std::string name = GENERATE("vendor", "numa_node", "config", "resource");
  CAPTURE(name);
  OddTree fake;
  fake.Remove(FakeTree::Of(kOdd, name));
  REQUIRE(::mkfifo((fake.root() / FakeTree::Of(kOdd, name)).c_str(), 0600) == 0);
  const PciDevice device = ReadOdd(fake);
  CHECK(device.address == At(kOdd));
  CHECK((name == "resource" ? device.bars.empty() : !device.errors.empty()));
}

TEST_CASE("links that loop or lead nowhere still give their names", "[sysfs]") {
  OddTree fake;
  fake.Link(FakeTree::Of(kOdd, "driver"), FakeTree::Of(kOdd, "driver"));
  fake.Link(FakeTree::Of(kOdd, "physfn"), "sys/devices/pci0000:3a/0000:3a:00.0");
  const PciDevice device = ReadOdd(fake);
  CHECK(device.driver == "driver");  // it points to itself
  CHECK(device.physfn == At("0000:3a:00.0"));
}

TEST_CASE("a group or a physical function that is no number or address is reported", "[sysfs]") {
  OddTree fake;
  fake.Link(FakeTree::Of(kOdd, "iommu_group"), "sys/kernel/iommu_groups/-4");
  CHECK(OnlyError(ReadOdd(fake)) == "iommu_group: not a group number: '-4'");
  fake.Link(FakeTree::Of(kOdd, "iommu_group"), "sys/kernel/iommu_groups/4");
  fake.Link(FakeTree::Of(kOdd, "physfn"), "sys/devices/foo");
  const PciDevice device = ReadOdd(fake);
  CHECK(device.group == 4);
  CHECK_FALSE(device.IsVf());
  CHECK(OnlyError(device).starts_with("physfn: not a PCI address"));
}

TEST_CASE("a config space of fewer than 64 bytes is unknown and reported", "[sysfs]") {
  const size_t size = GENERATE(as<size_t>{}, 0, 1, 63);
  CAPTURE(size);
  OddTree fake;
  fake.Write(FakeTree::Of(kOdd, "config"), EndpointConfig().Cut(size).text());
  const PciDevice device = ReadOdd(fake);
  CHECK(device.config.readable_bytes == 0);
  CHECK(device.config.acs.unknown());
  CHECK(OnlyError(device).find("config: fewer than 64 bytes readable") == 0);
}

TEST_CASE("a config space that is not there is unknown and reported", "[sysfs]") {
  OddTree fake;
  fake.Remove(FakeTree::Of(kOdd, "config"));
  const PciDevice device = ReadOdd(fake);
  CHECK(device.config.pcie_type.unknown());
  CHECK(OnlyError(device) == "config: absent");
}

TEST_CASE("a config space that is a link out of the root is not read", "[sysfs]") {
  OddTree fake;
  FakeTree outside;
  outside.Write("config", PortConfig(PcieType::kRootPort, kAcsOn).text());
  fake.Remove(FakeTree::Of(kOdd, "config"));
  std::filesystem::create_symlink(outside.root() / "config",
                                  fake.root() / FakeTree::Of(kOdd, "config"));
  const PciDevice device = ReadOdd(fake);
  CHECK(device.config.readable_bytes == 0);
  CHECK(OnlyError(device) == "config: not a regular file");
}

TEST_CASE("a region of all addresses is none", "[sysfs]") {
  OddTree fake;
  fake.Write(FakeTree::Of(kOdd, "resource"), "0x0 0xffffffffffffffff 0x0\n0x1000 0x1fff 0x200\n");
  CHECK(ReadOdd(fake).bars == std::vector<Bar>{{.index = 1, .size_bytes = 0x1000}});
}

TEST_CASE("resource lines that are nonsense end the list of regions", "[sysfs]") {
  OddTree fake;
  fake.Write(FakeTree::Of(kOdd, "resource"), "0x1000 0x1fff 0x200\nfoo bar\n0x3000 0x3fff 0x200\n");
  CHECK(ReadOdd(fake).bars == std::vector<Bar>{{.index = 0, .size_bytes = 0x1000}});
}

TEST_CASE("a device that is a file in place of a directory carries its error", "[sysfs]") {
  OddTree fake;
  fake.Remove("sys/bus/pci/devices/" + std::string(kOdd));
  fake.Write("sys/bus/pci/devices/" + std::string(kOdd), "");
  CHECK(OnlyError(ReadOdd(fake)).find("Not a directory") != std::string::npos);
}

TEST_CASE("a device whose link loops carries its error", "[sysfs]") {
  OddTree fake;
  const std::string link = "sys/bus/pci/devices/" + std::string(kOdd);
  CHECK(OnlyError(ReadOdd(static_cast<OddTree&>(fake.Link(link, link))))
            .find("Too many levels of symbolic links") != std::string::npos);
}

TEST_CASE("a device that went away meanwhile is NotFound", "[sysfs]") {
  OddTree fake;
  const Tree tree = fake.Open();
  ConfigReader config(tree);
  CHECK(absl::IsNotFound(ReadPciDevice(tree, config, At("0000:99:00.0")).status()));
  fake.Remove("sys/devices/pci0000:3b");  // the link is left, as between two steps of a removal
  CHECK(absl::IsNotFound(ReadPciDevice(tree, config, At(kOdd)).status()));
  const NodeFacts facts = fake.Facts();
  CHECK(facts.devices.size() == 1);
  CHECK(facts.skipped.size() == 1);
}

}  // namespace
}  // namespace vfio_agent
