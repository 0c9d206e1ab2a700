#include "iommu/isolation/relocation.h"

#include <catch2/catch.hpp>

#include "test/iommu/hardware.h"
#include "test/support/facts.h"

namespace vfio_agent {
namespace {

// A card and a disk below the switch of a root port that isolates nothing; a free root port that
// does, one with a disk, and one that cannot be read.
NodeFacts Board() {
  NodeFacts facts = MakeHardware({
      {.address = "0000:00:01.0", .type = RootPort(), .acs = SwitchedOff()},
      {.address = "0000:01:00.0", .type = Upstream(), .parent = "0000:00:01.0"},
      {.address = "0000:02:00.0", .type = Downstream(), .parent = "0000:01:00.0"},
      {.address = "0000:02:01.0", .type = Downstream(), .parent = "0000:01:00.0"},
      {.address = "0000:02:02.0", .type = Downstream(), .parent = "0000:01:00.0"},
      {.address = "0000:03:00.0", .parent = "0000:02:00.0", .multifunction = true},
      {.address = "0000:03:00.1", .parent = "0000:02:00.0", .multifunction = true},
      {.address = "0000:04:00.0", .parent = "0000:02:01.0"},
      {.address = "0000:00:02.0", .type = RootPort(), .acs = Isolating()},
      {.address = "0000:00:03.0", .type = RootPort(), .acs = Isolating()},
      {.address = "0000:05:00.0", .parent = "0000:00:03.0"},
      {.address = "0000:00:04.0", .type = RootPort(), .acs = Fact<Acs>::Unknown(EACCES)},
  });
  Find(facts, "0000:04:00.0").vendor = 0x144d;  // so that the switch is on neither card
  return facts;
}

const Move* Below(const Relocation& relocation, const char* port) {
  for (const Move& move : relocation.moves) {
    if (move.port == At(port)) return &move;
  }
  return nullptr;
}

Relocation Simulate(const NodeFacts& facts, const char* address) {
  return SimulateMoves(facts, *FindDevice(facts, At(address)));
}

TEST_CASE("in another slot a card is alone where that port isolates, and shares where it does not",
          "[topology]") {
  const NodeFacts facts = Board();
  const Relocation relocation = Simulate(facts, "0000:03:00.0");
  CHECK(relocation.fixed.empty());
  CHECK(relocation.card == std::vector<PciAddress>{At("0000:03:00.0"), At("0000:03:00.1")});

  const Move* const free = Below(relocation, "0000:00:02.0");
  REQUIRE(free != nullptr);
  CHECK(free->outcome == Move::Outcome::kAlone);
  CHECK(free->occupants.empty());

  // Another port of the same switch helps nothing.
  const Move* const beside = Below(relocation, "0000:02:02.0");
  REQUIRE(beside != nullptr);
  CHECK(beside->outcome == Move::Outcome::kShared);
  CHECK(beside->with == std::vector<PciAddress>{At("0000:04:00.0")});

  // What is there now takes the card's place.
  const Move* const taken = Below(relocation, "0000:00:03.0");
  REQUIRE(taken != nullptr);
  CHECK(taken->outcome == Move::Outcome::kAlone);
  CHECK(taken->occupants == std::vector<PciAddress>{At("0000:05:00.0")});

  // To change places with the one that it shares with helps nothing.
  const Move* const exchanged = Below(relocation, "0000:02:01.0");
  REQUIRE(exchanged != nullptr);
  CHECK(exchanged->outcome == Move::Outcome::kShared);
  CHECK(exchanged->with == std::vector<PciAddress>{At("0000:04:00.0")});

  const Move* const unread = Below(relocation, "0000:00:04.0");
  REQUIRE(unread != nullptr);
  CHECK(unread->outcome == Move::Outcome::kUnknown);
}

TEST_CASE("neither the slot that the card is in nor a port with a switch below is offered",
          "[topology]") {
  const Relocation relocation = Simulate(Board(), "0000:03:00.0");
  CHECK(Below(relocation, "0000:02:00.0") == nullptr);
  CHECK(Below(relocation, "0000:00:01.0") == nullptr);
  const Relocation other = Simulate(Board(), "0000:05:00.0");
  CHECK(Below(other, "0000:00:01.0") == nullptr);
  CHECK(Below(other, "0000:00:02.0") != nullptr);
}

TEST_CASE("a switch of the card's own maker moves with it", "[topology]") {
  NodeFacts facts = MakeHardware({
      {.address = "0000:00:01.0", .type = RootPort()},
      {.address = "0000:01:00.0", .type = Upstream(), .parent = "0000:00:01.0"},
      {.address = "0000:02:00.0",
       .type = Downstream(),
       .acs = Isolating(),
       .parent = "0000:01:00.0"},
      {.address = "0000:03:00.0", .parent = "0000:02:00.0"},
      {.address = "0000:00:02.0", .type = RootPort(), .acs = Isolating()},
  });
  for (const char* own : {"0000:01:00.0", "0000:02:00.0", "0000:03:00.0"}) {
    Find(facts, own).vendor = 0x1002;
  }
  const Relocation relocation = Simulate(facts, "0000:03:00.0");
  CHECK(relocation.card ==
        std::vector<PciAddress>{At("0000:01:00.0"), At("0000:02:00.0"), At("0000:03:00.0")});
  REQUIRE(relocation.moves.size() == 1);
  CHECK(relocation.moves.front().outcome == Move::Outcome::kAlone);
}

TEST_CASE("what is no card says why it stays", "[topology]") {
  NodeFacts facts = Board();
  CHECK_THAT(Simulate(facts, "0000:00:02.0").fixed, Catch::Contains("a bridge"));
  PciDevice& module = Find(facts, "0000:03:00.0");
  module.vendor = 0x10de;
  module.device = 0x2330;
  CHECK_THAT(Simulate(facts, "0000:03:00.0").fixed, Catch::Contains("NVLink board"));
  Find(facts, "0000:05:00.0").removable = true;
  CHECK_THAT(Simulate(facts, "0000:05:00.0").fixed, Catch::Contains("outside"));
  Find(facts, "0000:04:00.0").physfn = At("0000:03:00.0");
  CHECK_THAT(Simulate(facts, "0000:04:00.0").fixed, Catch::Contains("virtual function"));

  const NodeFacts root = MakeHardware({{.address = "0000:00:02.0"}});
  CHECK_THAT(Simulate(root, "0000:00:02.0").fixed, Catch::Contains("on a root bus"));
  const NodeFacts old = MakeHardware({
      {.address = "0000:00:1e.0", .type = Conventional()},
      {.address = "0000:01:00.0", .type = Conventional(), .parent = "0000:00:1e.0"},
  });
  CHECK_THAT(Simulate(old, "0000:01:00.0").fixed, Catch::Contains("no PCI Express card"));
}

TEST_CASE("with the IOMMU off the ports count as the kernel would set them up", "[topology]") {
  const NodeFacts facts = MakeHardware({
      {.address = "0000:00:01.0", .type = RootPort(), .acs = SwitchedOff()},
      {.address = "0000:01:00.0", .parent = "0000:00:01.0"},
      {.address = "0000:00:02.0", .type = RootPort()},
      {.address = "0000:02:00.0", .parent = "0000:00:02.0"},
      {.address = "0000:02:00.1", .parent = "0000:00:02.0"},
  });
  const NodeFacts on = WithAcsOn(facts);
  CHECK(ComputedCompany(on, At("0000:01:00.0")) == std::vector<PciAddress>{At("0000:01:00.0")});
  // Without the capability there is nothing to switch on.
  CHECK(ComputedCompany(on, At("0000:02:00.0")) ==
        std::vector<PciAddress>{At("0000:02:00.0"), At("0000:02:00.1")});
  CHECK(ComputedCompany(on, At("0000:77:00.0")) == std::nullopt);
}

}  // namespace
}  // namespace vfio_agent
