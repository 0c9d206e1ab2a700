#include "deviceplugin/offer/verify.h"

#include <filesystem>

#include "catch2/catch.hpp"
#include "test/deviceplugin/support.h"

namespace vfio_agent {
namespace {

// A GPU and its audio function in group 27, with a cdev.
OfferedUnit Gpu() {
  OfferedUnit unit = TestUnit("0000:11:00.0");
  unit.members.push_back("0000:11:00.1");
  unit.nodes.push_back("/dev/vfio/devices/vfio0");
  return unit;
}

std::string Verify(const UnitTree& node, const OfferedUnit& unit = Gpu()) {
  const absl::Status status = VerifyUnit(node.tree(), unit);
  CHECK((status.ok() || absl::IsFailedPrecondition(status)));
  return std::string(status.message());
}

TEST_CASE("R38: a unit that is as it was offered passes", "[deviceplugin]") {
  UnitTree node;
  node.Add(Gpu());
  CHECK(Verify(node).empty());
  node.SetDriver("0000:11:00.0", "mlx5_vfio_pci");  // a vfio driver made for the device
  CHECK(Verify(node).empty());
}

TEST_CASE("R38: whatever has changed since fails with its name", "[deviceplugin]") {
  UnitTree node;
  node.Add(Gpu());
  SECTION("the driver of the device") {
    node.SetDriver("0000:11:00.0", "nvidia");
    CHECK(Verify(node) == "0000:11:00.0: driver-changed: 0000:11:00.0 is bound to nvidia");
  }
  SECTION("the driver of a companion") {
    node.SetDriver("0000:11:00.1", "snd_hda_intel");
    CHECK(Verify(node) == "0000:11:00.0: driver-changed: 0000:11:00.1 is bound to snd_hda_intel");
  }
  SECTION("no driver any more") {
    node.SetDriver("0000:11:00.0", "");
    CHECK(Verify(node) == "0000:11:00.0: driver-changed: 0000:11:00.0 is bound to no driver");
  }
  SECTION("the group") {
    node.SetGroup("0000:11:00.1", 31);
    CHECK(Verify(node) ==
          "0000:11:00.0: group-changed: 0000:11:00.1 is in IOMMU group 31 now, was in 27");
  }
  SECTION("no group any more") {
    node.SetGroup("0000:11:00.1", std::nullopt);
    CHECK(Verify(node) == "0000:11:00.0: group-changed: 0000:11:00.1 is in no IOMMU group now");
  }
  SECTION("the group node") {
    node.RemoveNode("/dev/vfio/27");
    CHECK(Verify(node) == "0000:11:00.0: node-missing: the device node /dev/vfio/27 is missing");
  }
  SECTION("the cdev") {
    node.RemoveNode("/dev/vfio/devices/vfio0");
    CHECK(Verify(node) ==
          "0000:11:00.0: node-missing: the device node /dev/vfio/devices/vfio0 is missing");
  }
}

TEST_CASE("R38: a driver that has made a vfio device is one of vfio's, whatever its name",
          "[deviceplugin]") {
  UnitTree node;
  node.Add(Gpu());
  node.SetDriver("0000:11:00.0", "acme-guests");
  CHECK(Verify(node) == "0000:11:00.0: driver-changed: 0000:11:00.0 is bound to acme-guests");
  std::filesystem::create_directories(node.tree().root() +
                                      "/sys/bus/pci/devices/0000:11:00.0/vfio-dev/vfio0");
  CHECK(Verify(node).empty());
}

TEST_CASE("R38: the device itself is gone", "[deviceplugin]") {
  UnitTree node;
  CHECK(Verify(node) == "0000:11:00.0: device-gone: 0000:11:00.0 is not on the bus");
}

TEST_CASE("a companion without a driver, or on pci-stub, hinders nothing", "[deviceplugin]") {
  UnitTree node;
  node.Add(Gpu());
  node.SetDriver("0000:11:00.1", GENERATE("", "pci-stub"));
  CHECK(Verify(node).empty());
  node.SetDriver("0000:11:00.0", "pci-stub");
  CHECK(Verify(node) == "0000:11:00.0: driver-changed: 0000:11:00.0 is bound to pci-stub");
}

TEST_CASE("an address that is no member of the unit's group fails", "[deviceplugin]") {
  OfferedUnit unit = Gpu();
  unit.members.clear();
  UnitTree node;
  node.Add(Gpu());
  CHECK(Verify(node, unit) ==
        "0000:11:00.0: group-changed: 0000:11:00.0 is no member of IOMMU group 27");
}

}  // namespace
}  // namespace vfio_agent
