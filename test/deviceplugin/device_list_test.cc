#include "deviceplugin/offer/device_list.h"

#include "catch2/catch.hpp"
#include "test/deviceplugin/support.h"

namespace vfio_agent {
namespace {

// "0000:11:00.0 Healthy 0" for each device; the last word is left out without topology.
std::vector<std::string> Print(const Offer& offer) {
  std::vector<std::string> lines;
  const v1beta1::ListAndWatchResponse list = MakeDeviceList(offer);
  for (const v1beta1::Device& device : list.devices()) {
    std::string line = device.id() + " " + device.health();
    if (device.has_topology()) {
      REQUIRE(device.topology().nodes_size() == 1);
      line += " " + std::to_string(device.topology().nodes(0).id());
    }
    lines.push_back(line);
  }
  return lines;
}

TEST_CASE("R29: health is one of the kubelet's two words", "[deviceplugin]") {
  Offer offer = TestOffer("nvidia.com/X", {TestUnit("0000:11:00.0"), TestUnit("0000:12:00.0")});
  offer.units[1].healthy = false;
  CHECK(Print(offer) == std::vector<std::string>{"0000:11:00.0 Healthy", "0000:12:00.0 Unhealthy"});
}

TEST_CASE("R31, T12: NUMA nodes are told for all units of a resource or for none",
          "[deviceplugin]") {
  Offer offer =
      TestOffer("nvidia.com/X", {TestUnit("0000:11:00.0", 0), TestUnit("0000:12:00.0", 1)});
  CHECK(Print(offer) ==
        std::vector<std::string>{"0000:11:00.0 Healthy 0", "0000:12:00.0 Healthy 1"});
  const auto missing = GENERATE(std::optional<int>(), std::optional<int>(-1));
  offer.units[0].numa_node = missing;
  CHECK(Print(offer) == std::vector<std::string>{"0000:11:00.0 Healthy", "0000:12:00.0 Healthy"});
}

TEST_CASE("R32: the configuration can keep NUMA nodes from the kubelet", "[deviceplugin]") {
  Offer offer = TestOffer("nvidia.com/X", {TestUnit("0000:11:00.0", 0)});
  offer.numa = false;
  CHECK(Print(offer) == std::vector<std::string>{"0000:11:00.0 Healthy"});
}

TEST_CASE("R23: an empty offer is an empty list", "[deviceplugin]") {
  CHECK(Print(TestOffer("nvidia.com/X", {})).empty());
}

TEST_CASE("R24: two lists differ where the kubelet would see it, and only there",
          "[deviceplugin]") {
  const Offer offer = TestOffer("nvidia.com/X", {TestUnit("0000:11:00.0", 0)});
  Offer other = offer;
  SECTION("not in what only answers need") {
    other.units[0].nodes.push_back("/dev/vfio/devices/vfio0");
    other.units[0].reason = "x";
    CHECK(SameDeviceList(offer, other));
  }
  SECTION("not in NUMA nodes that are not told") {
    Offer quiet = offer;
    quiet.numa = false;
    other.numa = false;
    other.units[0].numa_node = 1;
    CHECK(SameDeviceList(quiet, other));
  }
  SECTION("in health") {
    other.units[0].healthy = false;
    CHECK_FALSE(SameDeviceList(offer, other));
  }
  SECTION("in a NUMA node") {
    other.units[0].numa_node = 1;
    CHECK_FALSE(SameDeviceList(offer, other));
  }
  SECTION("in whether NUMA nodes are told") {
    other.numa = false;
    CHECK_FALSE(SameDeviceList(offer, other));
  }
  SECTION("in the number of units") {
    other.units.push_back(TestUnit("0000:12:00.0", 0));
    CHECK_FALSE(SameDeviceList(offer, other));
  }
}

TEST_CASE("R34: the list of 4096 units is far below the kubelet's 4 MiB", "[deviceplugin]") {
  Offer offer = TestOffer("nvidia.com/X", {});
  for (int i = 0; i < 4096; ++i) offer.units.push_back(TestUnit("0000:11:00.0", 1));
  CHECK(MakeDeviceList(offer).ByteSizeLong() < size_t{256} * 1024);
}

}  // namespace
}  // namespace vfio_agent
