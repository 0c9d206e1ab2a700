#include "sysfs/use/use.h"

#include <catch2/catch.hpp>

#include "sysfs/device/device_walk.h"
#include "test/sysfs/use_tree.h"

namespace vfio_agent {
namespace {

constexpr char kInstance[] = "83b8f4f2-509f-382f-3c1e-e6bfe0fa1001";

TEST_CASE("every device that was asked for has an entry, and nobody else", "[sysfs]") {
  UseTree tree;
  tree.Process(7, "a", {"/dev/vfio/26"});
  const PciAddress gone = *PciAddress::Parse("0000:99:00.0");
  const PciAddress disk = *PciAddress::Parse(kDisk);
  const UseFacts uses = ReadUse(tree.Open(), tree.Facts(), {disk, gone}, {});
  CHECK(uses.devices == std::map<PciAddress, std::vector<Use>>{{disk, {}}, {gone, {}}});
  CHECK(uses.groups.empty());
  CHECK(uses.processes_known);
}

TEST_CASE("uses of several devices and groups are told apart in one walk", "[sysfs]") {
  UseTree tree;
  tree.Below(kDisk, "nvme/nvme0/dev", "240:0").Below(kCard, "drm/card1/dev", "226:1");
  tree.Process(7, "disk", {"/dev/nvme0"}).Process(8, "card", {"/dev/dri/card1"});
  tree.Process(9, "qemu-system-x86", {"/dev/vfio/26"}).Process(10, "other", {"/dev/vfio/27"});
  const PciAddress disk = *PciAddress::Parse(kDisk), card = *PciAddress::Parse(kCard);
  const UseFacts uses = ReadUse(tree.Open(), tree.Facts(), {disk, card}, {25, 26});
  REQUIRE(uses.devices.at(disk).size() == 1);
  CHECK(uses.devices.at(disk)[0].text == "is held open by pid 7 (disk): /dev/nvme0");
  REQUIRE(uses.devices.at(card).size() == 1);
  CHECK(uses.devices.at(card)[0].text == "is held open by pid 8 (card): /dev/dri/card1");
  CHECK(uses.groups ==
        std::map<int, std::vector<Holder>>{
            {26, {{.pid = 9, .command = "qemu-system-x86", .node = "/dev/vfio/26"}}}});
}

TEST_CASE("a device without a driver has no uses", "[sysfs]") {
  UseTree tree;
  tree.Below(kCard, "drm/card1/dev", "226:1").Process(8, "card", {"/dev/dri/card1"});
  CHECK_FALSE(tree.Uses(kCard).empty());
  tree.Remove(tree.Real(kCard) + "/driver");
  CHECK(tree.Uses(kCard).empty());
}

TEST_CASE("processes that cannot be seen are not known, not none", "[sysfs]") {
  UseTree tree;
  tree.Write("proc/7/fd", "not a directory");
  CHECK_FALSE(tree.Read(kCard).processes_known);
}

TEST_CASE("USB devices are a use of their controller, root hubs are not", "[sysfs]") {
  UseTree tree;
  tree.Below(kCard, "usb1/idVendor", "1d6b").Below(kCard, "usb1/1-0:1.0/authorized", "1");
  CHECK(tree.Uses(kCard).empty());
  tree.Below(kCard, "usb1/1-2/idVendor", "046d").Below(kCard, "usb1/1-2/idProduct", "c31c");
  tree.Below(kCard, "usb1/1-3/1-3.1/idVendor", "8087");
  CHECK(tree.Uses(kCard) == "process: has USB devices attached: 1-2 (046d:c31c), 1-3.1");
}

TEST_CASE("a hub full of USB devices is cut short", "[sysfs]") {
  UseTree tree;
  for (int i = 1; i <= 8; ++i) tree.Below(kCard, absl::StrFormat("usb1/1-%d/idVendor", i), "1");
  CHECK(tree.Uses(kCard).ends_with("1-5, 1-6, and 2 more"));
}

TEST_CASE("mediated devices belong to another manager", "[sysfs]") {
  UseTree tree;
  tree.Below(kCard, "mdev_supported_types/nvidia-63/available_instances", "8");
  CHECK(tree.Uses(kCard).empty());
  tree.Below(kCard, std::string(kInstance) + "/uevent", "");
  CHECK(tree.Uses(kCard) == absl::StrFormat("manager: has 1 mdev instance (%s)", kInstance));
  tree.Below(kCard, "93b8f4f2-509f-382f-3c1e-e6bfe0fa1001/uevent", "");
  CHECK(tree.Uses(kCard) == absl::StrFormat("manager: has 2 mdev instances (%s)", kInstance));
}

TEST_CASE("mediated devices of this program's are removed by it, others by who made them",
          "[sysfs]") {
  const auto remedy = [](const UseTree& tree) {
    return tree.Read(kCard).devices.begin()->second.front().remedy;
  };
  UseTree tree;
  tree.Below(kCard, "00000000-6500-8f10-8000-cb5fb97d4a6f/uevent", "");
  CHECK(remedy(tree) == absl::StrFormat("vfio-agent release %s", kCard));
  tree.Below(kCard, std::string(kInstance) + "/uevent", "");
  CHECK(remedy(tree) == "remove the mediated devices first (mdevctl stop)");
}

TEST_CASE("a function with a PCI domain of its own carries other functions", "[sysfs]") {
  UseTree tree;
  tree.Below(kCard, "pci10000:00/10000:e1:00.0/nvme/nvme0/nvme0n1/dev", "259:0");
  CHECK(tree.Uses(kCard) == "manager: carries the functions of another PCI domain (pci10000:00)");
}

TEST_CASE("a directory that never ends is a use that is not known", "[sysfs]") {
  UseTree tree;
  std::string path = "a";
  for (int i = 0; i < 40; ++i) path += "/a";
  tree.Below(kCard, path + "/dev", "1:1");
  const Below below = WalkBelow(tree.Open(), *PciAddress::Parse(kCard));
  CHECK_FALSE(below.whole);
  CHECK(below.nodes.empty());
  CHECK(tree.Uses(kCard) ==
        "process: has directories below it that could not be looked through: what it is used for "
        "is not known");
}

TEST_CASE("functions below a bridge are not its own", "[sysfs]") {
  UseTree tree;
  tree.Add({.address = "0000:00:01.0", .class_code = "0x060400", .driver = "pcieport"});
  tree.Add({.address = "0000:02:00.0", .driver = "nvidia", .parent = "0000:00:01.0"});
  tree.Below("0000:02:00.0", "drm/card1/dev", "226:1").Process(8, "a", {"/dev/dri/card1"});
  CHECK(tree.Uses("0000:00:01.0").empty());
  CHECK_FALSE(tree.Uses("0000:02:00.0").empty());
}

}  // namespace
}  // namespace vfio_agent
