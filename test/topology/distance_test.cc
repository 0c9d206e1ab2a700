#include "iommu/distance/distance.h"

#include <catch2/catch.hpp>

#include "test/iommu/hardware.h"
#include "test/support/facts.h"
#include "test/topology/switches.h"

namespace vfio_agent {
namespace {

// Two switches in a row below one root port, a root port beside it, a second host bridge on the
// same node and a third on another one.
NodeFacts Board() {
  NodeFacts facts = WithSwitches({
      {.address = "0000:14:00.1", .parent = "0000:12:01.0"},
      {.address = "0000:20:01.0", .type = RootPort()},
      {.address = "0000:21:00.0", .parent = "0000:20:01.0"},
      {.address = "0000:80:01.0", .type = RootPort()},
      {.address = "0000:81:00.0", .parent = "0000:80:01.0"},
  });
  for (PciDevice& device : facts.devices) device.numa_node = device.address.bus >= 0x80 ? 1 : 0;
  return facts;
}

const std::vector<NumaNode> kTwoNodes = {{.number = 0, .cpus = "0-7"},
                                         {.number = 1, .cpus = "8-15"}};

Distance Between(const NodeFacts& facts, const char* a, const char* b,
                 const std::vector<NumaNode>& numa = kTwoNodes) {
  const Distance distance =
      DistanceBetween(facts, numa, *FindDevice(facts, At(a)), *FindDevice(facts, At(b)));
  CHECK(DistanceBetween(facts, numa, *FindDevice(facts, At(b)), *FindDevice(facts, At(a))) ==
        distance);
  return distance;
}

struct Row {
  const char* a;
  const char* b;
  Distance distance;
};

const std::vector<Row> kRows = {
    {"0000:13:00.0", "0000:13:00.0", Distance::kSelf},
    {"0000:14:00.0", "0000:14:00.1", Distance::kPix},   // one slot: no bridge between them
    {"0000:13:00.0", "0000:14:00.0", Distance::kPix},   // two ports of one switch
    {"0000:17:00.0", "0000:18:00.0", Distance::kPix},   // the same, further down
    {"0000:13:00.0", "0000:17:00.0", Distance::kPxb},   // two switches
    {"0000:13:00.0", "0000:19:00.0", Distance::kPhb},   // two root ports of one host bridge
    {"0000:17:00.0", "0000:19:00.0", Distance::kPhb},   // however deep
    {"0000:13:00.0", "0000:21:00.0", Distance::kNode},  // two host bridges of one node
    {"0000:13:00.0", "0000:81:00.0", Distance::kSys},   // two nodes
};

TEST_CASE("a switch is passed as one thing, several are PXB, and a host bridge ends both",
          "[topology]") {
  const NodeFacts facts = Board();
  for (const Row& row : kRows) {
    CAPTURE(row.a, row.b);
    CHECK(Between(facts, row.a, row.b) == row.distance);
  }
}

TEST_CASE("without the config space the place in the path tells which ports are one switch",
          "[topology]") {
  NodeFacts facts = Board();
  for (PciDevice& device : facts.devices) {
    device.config.pcie_type = Fact<PcieType>::Unknown(EACCES);
  }
  for (const Row& row : kRows) {
    CAPTURE(row.a, row.b);
    CHECK(Between(facts, row.a, row.b) == row.distance);
  }
}

TEST_CASE("devices on one bus of a bridge to conventional PCI are PIX", "[topology]") {
  const NodeFacts facts = MakeHardware({
      {.address = "0000:00:1c.0", .type = RootPort()},
      {.address = "0000:01:00.0", .type = PcieToPci(), .parent = "0000:00:1c.0"},
      {.address = "0000:02:00.0", .type = Conventional(), .parent = "0000:01:00.0"},
      {.address = "0000:02:01.0", .type = Conventional(), .parent = "0000:01:00.0"},
      {.address = "0000:00:02.0"},
      {.address = "0000:00:03.0"},
  });
  CHECK(Between(facts, "0000:02:00.0", "0000:02:01.0") == Distance::kPix);
  // On the root bus itself nothing but the host bridge is there.
  CHECK(Between(facts, "0000:00:02.0", "0000:00:03.0") == Distance::kPhb);
}

TEST_CASE("two host bridges without a NUMA node are unknown, unless the machine has one node only",
          "[topology]") {
  NodeFacts facts = Board();
  Find(facts, "0000:13:00.0").numa_node = std::nullopt;
  CHECK(Between(facts, "0000:13:00.0", "0000:21:00.0") == Distance::kUnknown);
  CHECK(Between(facts, "0000:13:00.0", "0000:21:00.0", {}) == Distance::kUnknown);
  // A node with memory only has no device of its own.
  const std::vector<NumaNode> one = {{.number = 0, .cpus = "0-7"}, {.number = 1}};
  CHECK(Between(facts, "0000:13:00.0", "0000:21:00.0", one) == Distance::kNode);
  // Below one host bridge it does not matter.
  CHECK(Between(facts, "0000:13:00.0", "0000:19:00.0") == Distance::kPhb);
}

TEST_CASE("one host bridge with two NUMA nodes below it is SYS from one to the other",
          "[topology]") {
  NodeFacts facts = Board();
  Find(facts, "0000:19:00.0").numa_node = 1;
  CHECK(Between(facts, "0000:13:00.0", "0000:19:00.0") == Distance::kSys);
  // Below one switch it is the switch that counts.
  Find(facts, "0000:14:00.0").numa_node = 1;
  CHECK(Between(facts, "0000:13:00.0", "0000:14:00.0") == Distance::kPix);
}

TEST_CASE("a tree that tells no places gives no distances", "[topology]") {
  NodeFacts facts = Board();
  PciDevice& lost = Find(facts, "0000:13:00.0");
  lost.root.clear();
  lost.path.clear();
  CHECK(Between(facts, "0000:13:00.0", "0000:14:00.0") == Distance::kUnknown);
}

TEST_CASE("the grades are spelled as nvidia-smi spells them", "[topology]") {
  CHECK(Name(Distance::kSelf) == "X");
  CHECK(Name(Distance::kPix) == "PIX");
  CHECK(Name(Distance::kPxb) == "PXB");
  CHECK(Name(Distance::kPhb) == "PHB");
  CHECK(Name(Distance::kNode) == "NODE");
  CHECK(Name(Distance::kSys) == "SYS");
  CHECK(Name(Distance::kUnknown) == "?");
}

}  // namespace
}  // namespace vfio_agent
