#include "deviceplugin/offer.h"

#include <algorithm>

#include "catch2/catch.hpp"

namespace vfio_agent {
namespace {

PciAddress At(const std::string& text) { return *PciAddress::Parse(text); }

// A node with two GPUs, the first with its audio function, below a switch.
struct Node {
  NodeFacts facts;
  Plan plan;

  Node() {
    Device("0000:10:00.0", 14).config.is_bridge = true;
    Device("0000:11:00.0", 29).path = {At("0000:10:00.0")};
    Device("0000:11:00.1", 29);
    Device("0000:91:00.0", 30).numa_node = 1;
    plan.resources.push_back({.name = "nvidia.com/X"});
    AddUnit("0000:91:00.0", 30, 1);
    AddUnit("0000:11:00.0", 29, 0);
  }
  PciDevice& Device(const std::string& address, int group) {
    facts.devices.push_back({.address = At(address), .group = group, .root = "pci0000:00"});
    return facts.devices.back();
  }
  Unit& AddUnit(const std::string& id, int group, int numa_node) {
    plan.resources[0].units.push_back({.id = id,
                                       .primary = At(id),
                                       .addresses = {At(id)},
                                       .group = group,
                                       .numa_node = numa_node,
                                       .state = UnitState::kReady});
    return plan.resources[0].units.back();
  }
  void Cdev(size_t device, const std::string& name, bool node) {
    facts.devices[device].vfio_cdev = name;
    if (node) facts.vfio_nodes.insert("devices/" + name);
  }
  std::vector<OfferedUnit> Units(const std::vector<Offer>& before = {}) const {
    const std::vector<Offer> offers = MakeOffers(plan, facts, before);
    REQUIRE(offers.size() == 1);
    return offers[0].units;
  }
};

TEST_CASE("a ready unit is offered with its group's endpoints, node and path", "[deviceplugin]") {
  const std::vector<OfferedUnit> units = Node().Units();
  REQUIRE(units.size() == 2);
  CHECK(units[0] == OfferedUnit{.id = "0000:11:00.0",
                                .addresses = {"0000:11:00.0"},
                                .group = 29,
                                .numa_node = 0,
                                .path = {"pci0000:00", "0000:10:00.0"},
                                .members = {"0000:11:00.0", "0000:11:00.1"},
                                .nodes = {"/dev/vfio/29"},
                                .healthy = true});
}

TEST_CASE("R40: units stand in the order of NUMA node and address", "[deviceplugin]") {
  Node node;
  node.Device("10000:01:00.0", 31);
  node.AddUnit("10000:01:00.0", 31, 0);
  node.Device("0000:f1:00.0", 32);
  node.AddUnit("0000:f1:00.0", 32, 0);
  std::vector<std::string> ids;
  for (const OfferedUnit& unit : node.Units()) ids.push_back(unit.id);
  CHECK(ids ==
        std::vector<std::string>{"0000:11:00.0", "0000:f1:00.0", "10000:01:00.0", "0000:91:00.0"});
}

TEST_CASE("R46: a cdev is named only where sysfs and /dev both have it", "[deviceplugin]") {
  Node node;
  node.Cdev(1, "vfio0", true);
  node.Cdev(2, "vfio1", false);
  node.facts.vfio_nodes.insert("devices/vfio7");
  CHECK(node.Units()[0].nodes ==
        std::vector<std::string>{"/dev/vfio/29", "/dev/vfio/devices/vfio0"});
}

TEST_CASE("R18: a unit that waits to be bound, or is refused, is not offered", "[deviceplugin]") {
  Node node;
  node.plan.resources[0].units[0].state = GENERATE(UnitState::kToBind, UnitState::kRefused);
  const std::vector<OfferedUnit> units = node.Units();
  REQUIRE(units.size() == 1);
  CHECK(units[0].id == "0000:11:00.0");
}

TEST_CASE("R30: a bound unit with something wrong is listed as unhealthy", "[deviceplugin]") {
  Node node;
  node.plan.resources[0].units[1].state =
      GENERATE(UnitState::kUnhealthy, UnitState::kHeld, UnitState::kWithheld);
  node.plan.resources[0].units[1].reason = "a reason";
  const std::vector<OfferedUnit> units = node.Units();
  REQUIRE(units.size() == 2);
  CHECK_FALSE(units[0].healthy);
  CHECK(units[0].reason == "a reason");
  CHECK(units[1].healthy);
}

TEST_CASE("R28: what was offered once stays in the list as unhealthy", "[deviceplugin]") {
  Node node;
  const std::vector<Offer> before = MakeOffers(node.plan, node.facts, {});
  std::vector<Unit>& units = node.plan.resources[0].units;

  SECTION("when its driver was taken back") {
    units[1].state = UnitState::kToBind;
    units[1].reason = "0000:11:00.0 is bound to nvidia";
    const std::vector<OfferedUnit> now = node.Units(before);
    REQUIRE(now.size() == 2);
    CHECK(now[0].id == "0000:11:00.0");
    CHECK_FALSE(now[0].healthy);
    CHECK(now[0].reason == "0000:11:00.0 is bound to nvidia");
    CHECK(now[0].nodes == before[0].units[0].nodes);
  }
  SECTION("when the device is gone") {
    units.pop_back();
    std::erase_if(node.facts.devices,
                  [](const PciDevice& device) { return device.address == At("0000:11:00.0"); });
    const std::vector<OfferedUnit> now = node.Units(before);
    REQUIRE(now.size() == 2);
    CHECK_FALSE(now[0].healthy);
    CHECK(now[0].reason == "the device is gone");
  }
  SECTION("when the configuration no longer selects it") {
    units.pop_back();
    CHECK(node.Units(before)[0].reason == "the device is no longer selected for this resource");
  }
  SECTION("when the whole resource is out of the configuration") {
    node.plan.resources.clear();
    const std::vector<OfferedUnit> now = node.Units(before);
    REQUIRE(now.size() == 2);
    CHECK(std::ranges::none_of(now, &OfferedUnit::healthy));
  }
  SECTION("and comes back healthy") {
    units[1].state = UnitState::kToBind;
    const std::vector<Offer> sick = MakeOffers(node.plan, node.facts, before);
    units[1].state = UnitState::kReady;
    CHECK(MakeOffers(node.plan, node.facts, sick) == before);
  }
}

}  // namespace
}  // namespace vfio_agent
