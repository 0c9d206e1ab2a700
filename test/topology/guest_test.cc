#include "agent/topology/guest.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <tuple>

#include "absl/strings/str_format.h"

#include "test/iommu/hardware.h"
#include "test/support/facts.h"
#include "test/topology/switches.h"

namespace vfio_agent {
namespace {

using Model = GuestController::Model;

const std::vector<NumaNode> kNuma = {{.number = 0, .cpus = "0-7"}, {.number = 1, .cpus = "8-15"}};

// On node 0 a GPU (with its audio function) and a NIC below one switch, a drive below a second
// switch below the first; beside them a GPU below a root port of its own. On node 1 a GPU whose
// switch has nothing else. One device of which no node is told.
NodeFacts Host() {
  NodeFacts facts = WithSwitches({
      {.address = "0000:13:00.1", .parent = "0000:12:00.0"},
      {.address = "0000:80:01.0", .type = RootPort()},
      {.address = "0000:81:00.0", .type = Upstream(), .parent = "0000:80:01.0"},
      {.address = "0000:82:00.0", .type = Downstream(), .parent = "0000:81:00.0"},
      {.address = "0000:83:00.0", .parent = "0000:82:00.0"},
      {.address = "0000:c0:01.0", .type = RootPort()},
      {.address = "0000:c1:00.0", .parent = "0000:c0:01.0"},
  });
  for (PciDevice& device : facts.devices) {
    if (device.address.bus < 0xc0) device.numa_node = device.address.bus >= 0x80 ? 1 : 0;
  }
  return facts;
}

std::vector<PciAddress> Endpoints(const NodeFacts& facts) {
  std::vector<PciAddress> endpoints;
  for (const PciDevice& device : facts.devices) {
    if (!device.IsBridge() && device.config.pcie_type.is(PcieType::kEndpoint)) {
      endpoints.push_back(device.address);
    }
  }
  return endpoints;
}

GuestLayout Layout(const NodeFacts& facts, const std::vector<PciAddress>& devices) {
  const auto layout = PlanGuest(facts, kNuma, devices);
  INFO(layout.status());
  REQUIRE(layout.ok());
  return *layout;
}

const GuestController& At(const GuestLayout& layout, int index) {
  return layout.controllers.at(static_cast<size_t>(index) - 1);
}

// What the guest would see above a device: hops as on a host, and the expander at the top.
struct GuestPlace {
  int expander = 0;
  std::vector<Hop> hops;
};
GuestPlace PlaceOf(const GuestLayout& layout, const GuestFunction& function) {
  const auto name = [](int index) { return PciAddress{.bus = static_cast<uint8_t>(index)}; };
  GuestPlace place;
  for (int bus = function.bus; bus != 0;) {
    const GuestController& port = At(layout, bus);
    if (port.model == Model::kExpander) {
      place.expander = bus;
    } else if (port.model == Model::kDownstream) {
      place.hops.insert(place.hops.begin(), {.entry = name(port.bus), .exit = name(bus)});
      bus = port.bus;
    } else {
      place.hops.insert(place.hops.begin(), {.entry = name(bus), .exit = name(bus)});
    }
    bus = At(layout, bus).bus;
  }
  return place;
}

Distance GuestDistance(const GuestLayout& layout, const GuestFunction& a, const GuestFunction& b) {
  const GuestPlace first = PlaceOf(layout, a), second = PlaceOf(layout, b);
  if (first.expander != second.expander) return Distance::kSys;
  return DistanceOf(first.hops, second.hops);
}

TEST_CASE("no pair is farther in the guest than on the host, and what is PIX stays PIX",
          "[topology]") {
  const NodeFacts facts = Host();
  const GuestLayout layout = Layout(facts, Endpoints(facts));
  REQUIRE(layout.functions.size() == Endpoints(facts).size());
  for (const GuestFunction& a : layout.functions) {
    for (const GuestFunction& b : layout.functions) {
      if (a.host == b.host) continue;
      CAPTURE(a.host.ToString(), b.host.ToString());
      const Distance host =
          DistanceBetween(facts, kNuma, *FindDevice(facts, a.host), *FindDevice(facts, b.host));
      const Distance guest = GuestDistance(layout, a, b);
      CHECK(guest <= host);
      if (host >= Distance::kPhb && host != Distance::kNode) CHECK(guest >= Distance::kPhb);
      if (host == Distance::kPxb) CHECK(guest == Distance::kPxb);
    }
  }
}

TEST_CASE("a switch with one of the devices below it is left out", "[topology]") {
  const NodeFacts facts = Host();
  const GuestLayout layout = Layout(facts, {vfio_agent::At("0000:83:00.0")});
  REQUIRE(layout.controllers.size() == 2);
  CHECK(layout.controllers[0].model == Model::kExpander);
  CHECK(layout.controllers[1].model == Model::kRootPort);
  REQUIRE(layout.functions.size() == 1);
  CHECK(layout.functions.front().bus == layout.controllers[1].index);
}

TEST_CASE("the other functions of a slot stay together in the guest", "[topology]") {
  const NodeFacts facts = Host();
  const GuestLayout layout =
      Layout(facts, {vfio_agent::At("0000:13:00.1"), vfio_agent::At("0000:13:00.0")});
  REQUIRE(layout.functions.size() == 2);
  CHECK(layout.functions[0] == GuestFunction{.host = vfio_agent::At("0000:13:00.0"),
                                             .bus = layout.functions[0].bus,
                                             .function = 0,
                                             .multifunction = true});
  CHECK(layout.functions[1] == GuestFunction{.host = vfio_agent::At("0000:13:00.1"),
                                             .bus = layout.functions[0].bus,
                                             .function = 1,
                                             .multifunction = false});
}

TEST_CASE("each NUMA node is a cell with an expander; what has none is below the machine's root",
          "[topology]") {
  const NodeFacts facts = Host();
  const GuestLayout layout = Layout(facts, Endpoints(facts));
  CHECK(layout.cells == std::vector<GuestCell>{{.cell = 0, .host_node = 0, .cpus = "0-7"},
                                               {.cell = 1, .host_node = 1, .cpus = "8-15"}});
  CHECK(std::ranges::count(layout.controllers, Model::kExpander, &GuestController::model) == 2);
  const auto lost =
      std::ranges::find(layout.functions, vfio_agent::At("0000:c1:00.0"), &GuestFunction::host);
  REQUIRE(lost != layout.functions.end());
  CHECK(PlaceOf(layout, *lost).expander == 0);
}

// libvirt's own rules: a place is used once, and each model is plugged into what takes it.
void CheckPlaces(const GuestLayout& layout) {
  std::set<std::tuple<int, int, int>> places;
  for (const GuestController& port : layout.controllers) {
    CAPTURE(port.index);
    CHECK(port.bus < port.index);
    CHECK(places.emplace(port.bus, port.slot, port.function).second);
    const Model above = port.bus == 0 ? Model::kExpander : At(layout, port.bus).model;
    switch (port.model) {
      case Model::kExpander:
        CHECK(port.bus == 0);
        break;
      case Model::kRootPort:
        CHECK((port.bus == 0 || above == Model::kExpander));
        break;
      case Model::kUpstream:
        CHECK((above == Model::kRootPort || above == Model::kDownstream));
        CHECK(port.slot == 0);
        break;
      case Model::kDownstream:
        CHECK(above == Model::kUpstream);
    }
    CHECK(port.slot < 32);
  }
  for (const GuestFunction& function : layout.functions) {
    CHECK(places.emplace(function.bus, 0, function.function).second);
    const Model above = At(layout, function.bus).model;
    CHECK((above == Model::kRootPort || above == Model::kDownstream));
  }
}

// The bus below an expander and those below its ports end before the next expander's.
void CheckBuses(const GuestLayout& layout) {
  std::vector<std::pair<int, int>> ranges;  // first, and the one after the last
  for (const GuestController& top : layout.controllers) {
    if (top.model != Model::kExpander) continue;
    int count = 1;
    for (const GuestController& port : layout.controllers) {
      for (int bus = port.bus; bus != 0; bus = At(layout, bus).bus) {
        if (bus == top.index) ++count;
      }
    }
    CHECK(top.bus_number >= 32);
    CHECK(top.bus_number <= 254);
    ranges.emplace_back(top.bus_number, top.bus_number + count);
  }
  std::ranges::sort(ranges);
  for (size_t i = 0; i < ranges.size(); ++i) {
    CHECK(ranges[i].second <= (i + 1 < ranges.size() ? ranges[i + 1].first : 256));
  }
}

TEST_CASE("places are used once, and the expanders' buses do not overlap", "[topology]") {
  const NodeFacts facts = Host();
  const GuestLayout layout = Layout(facts, Endpoints(facts));
  CheckPlaces(layout);
  CheckBuses(layout);
}

// `count` cards, each below a root port of its own, all on `nodes` NUMA nodes in turn.
NodeFacts Many(int count, int nodes) {
  std::vector<Part> parts;
  for (int i = 0; i < count; ++i) {
    const std::string domain = absl::StrFormat("%04x", i);
    parts.push_back({.address = domain + ":00:01.0", .type = RootPort()});
    parts.push_back({.address = domain + ":01:00.0", .parent = domain + ":00:01.0"});
  }
  NodeFacts facts = MakeHardware(parts);
  for (PciDevice& device : facts.devices) {
    if (nodes > 0) device.numa_node = static_cast<int>(device.address.domain) % nodes;
  }
  return facts;
}

TEST_CASE("as many cards as a guest has room for get a place each", "[topology]") {
  const auto [count, nodes] = GENERATE(std::pair{32, 1}, std::pair{64, 2}, std::pair{64, 0});
  CAPTURE(count, nodes);
  const NodeFacts facts = Many(count, nodes);
  const GuestLayout layout = Layout(facts, Endpoints(facts));
  CHECK(layout.functions.size() == static_cast<size_t>(count));
  CheckPlaces(layout);
  CheckBuses(layout);
}

TEST_CASE("more than a guest has room for is an error that says what is too many", "[topology]") {
  struct Row {
    int count;
    int nodes;
    const char* what;
  };
  const auto row = GENERATE(Row{33, 1, "root ports"}, Row{65, 0, "root ports"},
                            Row{9, 9, "NUMA nodes"}, Row{224, 8, "buses"});
  CAPTURE(row.count, row.nodes);
  const NodeFacts facts = Many(row.count, row.nodes);
  const auto layout = PlanGuest(facts, kNuma, Endpoints(facts));
  CHECK(absl::IsResourceExhausted(layout.status()));
  CHECK_THAT(std::string(layout.status().message()), Catch::Contains(row.what));
}

TEST_CASE("the memory that the devices map is added up", "[topology]") {
  NodeFacts facts = Host();
  Find(facts, "0000:83:00.0").bars = {{.index = 0, .size_bytes = 16},
                                      {.index = 2, .size_bytes = 4}};
  CHECK(Layout(facts, Endpoints(facts)).bar_bytes == 20);
}

}  // namespace
}  // namespace vfio_agent
