#include "deviceplugin/offer/offer.h"

#include <algorithm>

#include "catch2/catch.hpp"

namespace vfio_agent {
namespace {

PciAddress At(const std::string& text) { return *PciAddress::Parse(text); }

// A node with two GPUs, the first with its audio function, below a switch.
struct Node {
  OfferOptions options;
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
    facts.vfio_nodes = {"vfio", "29", "30"};
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
  // `later`: how long after the first offers.
  std::vector<Offer> Offers(const std::vector<Offer>& before, const Tenancy* tenancy = nullptr,
                            absl::Duration later = absl::ZeroDuration()) const {
    return MakeOffers(plan, facts, before, options, tenancy, absl::UnixEpoch() + later);
  }
  std::vector<OfferedUnit> Units(const std::vector<Offer>& before = {}) const {
    const std::vector<Offer> offers = Offers(before);
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
                                .nodes = {"/dev/vfio/vfio", "/dev/vfio/29"},
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

TEST_CASE("R46, T18: a cdev is named beside the group, and only where sysfs and /dev both have it",
          "[deviceplugin]") {
  Node node;
  node.Cdev(1, "vfio0", true);
  node.Cdev(2, "vfio1", false);
  node.facts.vfio_nodes.insert("devices/vfio7");
  CHECK(node.Units()[0].nodes ==
        std::vector<std::string>{"/dev/vfio/vfio", "/dev/vfio/29", "/dev/vfio/devices/vfio0"});
  node.Cdev(2, "vfio1", true);  // a companion's: the guest opens what the variable names
  CHECK(node.Units()[0].nodes.size() == 3);
}

TEST_CASE(
    "R46, R47: a kernel without group nodes gives cdevs alone, with the setting /dev/iommu too",
    "[deviceplugin]") {
  Node node;
  node.facts.vfio_nodes.clear();
  node.facts.iommu_node = true;
  node.Cdev(1, "vfio0", true);
  CHECK(node.Units()[0].nodes == std::vector<std::string>{"/dev/vfio/devices/vfio0"});
  node.options.iommufd = true;
  CHECK(node.Units()[0].nodes == std::vector<std::string>{"/dev/vfio/devices/vfio0", "/dev/iommu"});
  CHECK(node.Units()[1].nodes.empty());  // has no cdev, so /dev/iommu is of no use to it
  node.facts.iommu_node = false;
  CHECK(node.Units()[0].nodes == std::vector<std::string>{"/dev/vfio/devices/vfio0"});
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
  node.plan.resources[0].units[1].state = GENERATE(UnitState::kUnhealthy, UnitState::kWithheld);
  node.plan.resources[0].units[1].reason = "a reason";
  const std::vector<OfferedUnit> units = node.Units();
  REQUIRE(units.size() == 2);
  CHECK_FALSE(units[0].healthy);
  CHECK(units[0].reason == "a reason");
  CHECK(units[1].healthy);
}

TEST_CASE("R28, T31: a unit that a pod has stays healthy, and the offer tells who has it",
          "[deviceplugin]") {
  Node node;
  Unit& unit = node.plan.resources[0].units[1];
  unit.state = UnitState::kHeld;
  unit.reason = "pod team/vm (container compute)";
  unit.pods = {{"team", "vm", "compute", "nvidia.com/X", unit.id}};
  const std::vector<OfferedUnit> units = node.Units();
  REQUIRE(units.size() == 2);
  CHECK(units[0].healthy);
  CHECK(units[0].holder == "pod team/vm (container compute)");
  CHECK(units[0].reason.empty());
}

TEST_CASE("R28, T8, T9: what was offered once stays in the list as unhealthy", "[deviceplugin]") {
  Node node;
  const std::vector<Offer> before = node.Offers({});
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
    CHECK(node.Units(before)[0].reason ==
          "the device is no longer selected for this resource, by the configuration or the mode");
  }
  SECTION("when the whole resource is out of the configuration") {
    node.plan.resources.clear();
    const std::vector<OfferedUnit> now = node.Units(before);
    REQUIRE(now.size() == 2);
    CHECK(std::ranges::none_of(now, &OfferedUnit::healthy));
  }
  SECTION("and comes back healthy") {
    units[1].state = UnitState::kToBind;
    const std::vector<Offer> sick = node.Offers(before);
    units[1].state = UnitState::kReady;
    CHECK(node.Offers(sick) == before);
  }
}

// The first list of `node`, then the same with the unit 0000:11:00.0 out of the plan.
struct Removed {
  Node node;
  std::vector<Offer> offers = node.Offers({});
  Tenancy tenancy;

  Removed() { node.plan.resources[0].units.pop_back(); }
  size_t Count(absl::Duration later) {
    offers = node.Offers(offers, &tenancy, later);
    return offers.at(0).units.size();
  }
};

TEST_CASE("R28: a unit is taken off the list ten seconds after no pod has it any more",
          "[deviceplugin]") {
  Removed removed;
  CHECK(removed.Count(absl::Seconds(0)) == 2);
  CHECK(HasWithdrawn(removed.offers));
  CHECK(removed.Count(absl::Seconds(9)) == 2);
  CHECK(removed.Count(absl::Seconds(10)) == 1);
  CHECK_FALSE(HasWithdrawn(removed.offers));
}

TEST_CASE("R28, T8, T9: a unit that a pod has, or may have, is never taken off the list",
          "[deviceplugin]") {
  Removed removed;
  SECTION("a pod has it") {
    removed.tenancy.claims.list = {{"team", "vm", "compute", "nvidia.com/X", "0000:11:00.0"}};
  }
  SECTION("Allocate has just given it") {
    removed.tenancy.grants = {{.resource = "nvidia.com/X", .unit = "0000:11:00.0", .group = 29}};
  }
  SECTION("the kubelet never said") { removed.tenancy.claims.known = false; }
  SECTION("the kubelet does not answer now") { removed.tenancy.silent = "no answer"; }
  for (int i = 0; i <= 100; i += 10) CHECK(removed.Count(absl::Seconds(i)) == 2);
  removed.tenancy = {};
  CHECK(removed.Count(absl::Seconds(101)) == 2);  // the ten seconds begin now
  CHECK(removed.Count(absl::Seconds(110)) == 1);
}

TEST_CASE("R50: what is offered no more is kept for the pod that has it, as long as it has it",
          "[deviceplugin]") {
  Removed removed;
  removed.tenancy.claims.list = {{"team", "vm", "compute", "nvidia.com/X", "0000:11:00.0"}};
  const auto kept = [&removed](int seconds) {
    removed.Count(absl::Seconds(seconds));
    const OfferedUnit& unit = removed.offers.at(0).units.at(0);
    REQUIRE(unit.id == "0000:11:00.0");
    CHECK_FALSE(unit.healthy);
    return unit.kept;
  };
  const auto pods = removed.tenancy.claims.list;
  CHECK(kept(0));
  CHECK(kept(1));
  removed.tenancy.claims.list.clear();
  CHECK_FALSE(kept(2));
  removed.tenancy.claims.list = pods;  // given just before it was withdrawn, and seen now
  CHECK(kept(3));
}

TEST_CASE("R50: what is withheld from others is kept for the pod that has it, nothing else",
          "[deviceplugin]") {
  Node node;
  std::vector<Unit>& units = node.plan.resources[0].units;
  units[1].state = UnitState::kWithheld;
  units[1].kept = GENERATE(false, true);
  CHECK(node.Units()[0].kept == units[1].kept);
  // Not where the pod came another way.
  units[1].pods = {{.pod_namespace = "team", .pod = "claim", .unit = units[1].id}};
  CHECK_FALSE(node.Units()[0].kept);
}

TEST_CASE("R25: a unit that changes its resource is in one list at a time", "[deviceplugin]") {
  Removed removed;
  Unit moved = removed.node.AddUnit("0000:11:00.0", 29, 0);
  removed.node.plan.resources[0].units.pop_back();
  removed.node.plan.resources.push_back({.name = "nvidia.com/Y", .units = {moved}});
  CHECK(removed.Count(absl::Seconds(0)) == 2);
  CHECK(removed.offers.at(1).units.empty());
  CHECK(removed.Count(absl::Seconds(10)) == 1);
  REQUIRE(removed.offers.at(1).units.size() == 1);
  CHECK(removed.offers[1].units[0].id == "0000:11:00.0");
  CHECK(removed.offers[1].units[0].healthy);
}

TEST_CASE("a bundle is offered with the members and nodes of all its groups", "[deviceplugin]") {
  Node node;
  Unit& unit = node.plan.resources[0].units[1];
  unit.groups = {29, 30};
  unit.addresses.push_back(At("0000:91:00.0"));
  unit.pairs = {{At("0000:11:00.0"), At("0000:91:00.0")}};
  node.plan.resources[0].units.erase(node.plan.resources[0].units.begin());
  node.plan.resources[0].partitions = {{"0000:11:00.0"}};
  node.plan.resources[0].only_partitions = true;
  node.plan.resources[0].partitions_fault = "a fault";
  const std::vector<Offer> offers = node.Offers({});
  REQUIRE(offers.size() == 1);
  CHECK(offers[0].partitions == node.plan.resources[0].partitions);
  CHECK(offers[0].only_partitions);
  CHECK(offers[0].partitions_fault == "a fault");
  REQUIRE(offers[0].units.size() == 1);
  const OfferedUnit& offered = offers[0].units[0];
  CHECK(GroupsOf(offered) == std::vector<int>{29, 30});
  CHECK(offered.members ==
        std::vector<std::string>{"0000:11:00.0", "0000:11:00.1", "0000:91:00.0"});
  CHECK(offered.nodes ==
        std::vector<std::string>{"/dev/vfio/vfio", "/dev/vfio/29", "/dev/vfio/30"});
  CHECK(offered.pairs == std::vector<std::string>{"0000:11:00.0=0000:91:00.0"});
}

}  // namespace
}  // namespace vfio_agent
