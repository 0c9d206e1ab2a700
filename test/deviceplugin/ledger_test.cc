// One group, one owner: what Allocate may give while the kubelet's pods do not tell yet.
#include "deviceplugin/offer/ledger.h"

#include <thread>

#include "catch2/catch.hpp"
#include "test/deviceplugin/support.h"

namespace vfio_agent {
namespace {

using Units = std::vector<const OfferedUnit*>;

constexpr char kName[] = "nvidia.com/X";

// Two units of group 7, and a lone one of group 8.
struct Board {
  OfferedUnit a = InGroup("0000:11:00.0", 7), b = InGroup("0000:12:00.0", 7),
              lone = InGroup("0000:21:00.0", 8);
  Ledger ledger;

  static OfferedUnit InGroup(const std::string& address, int group) {
    OfferedUnit unit = TestUnit(address);
    unit.group = group;
    unit.nodes = {"/dev/vfio/vfio", "/dev/vfio/" + std::to_string(group)};
    return unit;
  }
  absl::Status Take(const Units& units) { return ledger.Take(kName, {units}); }
};

TEST_CASE("R33: a unit whose sibling went to another container is refused", "[deviceplugin]") {
  Board board;
  REQUIRE(board.Take({&board.a}).ok());
  const absl::Status refused = board.Take({&board.b});
  CHECK(absl::IsFailedPrecondition(refused));
  CHECK(refused.message() ==
        "group-split: 0000:11:00.0 of IOMMU group 7 went to another container, so 0000:12:00.0 "
        "cannot be given: a group has one owner");
  CHECK(board.Take({&board.lone}).ok());
  CHECK(board.ledger.Grants().size() == 2);
}

TEST_CASE("R33: all units of a group may go to one container", "[deviceplugin]") {
  Board board;
  REQUIRE(board.Take({&board.a, &board.b}).ok());
  CHECK(board.ledger.Grants().size() == 2);
}

TEST_CASE("R33: one call does not split a group between its containers, and gives nothing then",
          "[deviceplugin]") {
  Board board;
  CHECK_FALSE(board.ledger.Take(kName, {{&board.lone}, {&board.a}, {&board.b}}).ok());
  CHECK(board.ledger.Grants().empty());
  CHECK(board.ledger.answers().empty());
}

TEST_CASE("a unit that is asked for again is free, with all that the same container had",
          "[deviceplugin]") {
  Board board;
  REQUIRE(board.Take({&board.a, &board.b}).ok());
  // An init container's units go on to the pod's containers; and a pod that was not admitted.
  REQUIRE(board.Take({&board.a}).ok());
  CHECK(board.ledger.Grants().size() == 1);
  CHECK_FALSE(board.Take({&board.b}).ok());
  CHECK(board.Take({&board.a, &board.b}).ok());
}

TEST_CASE("a settled grant leaves the group to others, a later one of the same unit does not",
          "[deviceplugin]") {
  Board board;
  REQUIRE(board.Take({&board.a}).ok());
  const std::vector<Grant> first = board.ledger.Grants();
  REQUIRE(board.Take({&board.a}).ok());
  board.ledger.Drop(first);
  CHECK_FALSE(board.Take({&board.b}).ok());
  board.ledger.Drop(board.ledger.Grants());
  CHECK(board.Take({&board.b}).ok());
}

TEST_CASE("R50: a container that starts with what the kubelet kept has the group from then on",
          "[deviceplugin]") {
  Board board;  // the kubelet has restarted: its list of pods does not tell yet
  REQUIRE(board.ledger.Start(kName, {&board.a}).ok());
  CHECK_FALSE(board.Take({&board.b}).ok());
  CHECK(board.ledger.Start(kName, {&board.a}).ok());  // another try
  CHECK(board.ledger.Grants().size() == 1);
}

TEST_CASE("R50: what was given long before its container starts is out from then on again",
          "[deviceplugin]") {
  Board board;
  REQUIRE(board.Take({&board.a}).ok());
  const std::vector<Grant> given = board.ledger.Grants();
  REQUIRE(board.ledger.Start(kName, {&board.a}).ok());
  board.ledger.Drop(given);  // by a look from before the start
  CHECK_FALSE(board.Take({&board.b}).ok());
}

TEST_CASE("R50: a container does not start with a unit whose sibling went to another one",
          "[deviceplugin]") {
  Board board;
  REQUIRE(board.Take({&board.b}).ok());
  CHECK_THAT(std::string(board.ledger.Start(kName, {&board.a}).message()),
             Catch::StartsWith("group-split"));
  REQUIRE(board.ledger.Start(kName, {&board.b}).ok());
  CHECK(board.ledger.Grants().size() == 1);
}

TEST_CASE("what is given back is free", "[deviceplugin]") {
  Board board;
  REQUIRE(board.Take({&board.a, &board.lone}).ok());
  board.ledger.GiveBack({{&board.a, &board.lone}});
  CHECK(board.ledger.Grants().empty());
  CHECK(board.Take({&board.b}).ok());
}

TEST_CASE("R28: what pods have of an agent before this one is offered from the first list on",
          "[deviceplugin]") {
  Board board;
  REQUIRE(board.Take({&board.a, &board.b}).ok());
  const PodClaims claims{.list = {{"team", "vm", "compute", kName, "0000:11:00.0"},
                                  {"team", "vm", "compute", "x.org/other", "0000:12:00.0"},
                                  {"team", "vm", "compute", kName, "0000:77:00.0"}}};
  const std::vector<Offer> offers = OffersOfPods(claims, board.ledger.answers());
  REQUIRE(offers.size() == 1);
  CHECK(offers[0].resource == kName);
  REQUIRE(offers[0].units.size() == 1);
  CHECK(offers[0].units[0].id == "0000:11:00.0");
  CHECK(offers[0].units[0].group == 7);
  CHECK_FALSE(offers[0].units[0].healthy);
}

TEST_CASE("R27: what a pod has and no answer tells of counts as answered with what is there",
          "[deviceplugin]") {
  Board board;
  const PodClaims claims{.list = {{"team", "vm", "compute", kName, "0000:11:00.0"},
                                  {"team", "claim", "", kName, "0000:12:00.0"}}};
  board.ledger.Learn(claims, {{.resource = kName, .units = {board.a, board.b}}});
  CHECK(board.ledger.answers().size() == 1);
  OfferedUnit later = board.a;
  CHECK(board.ledger.CheckUnchanged(later).ok());
  later.group = 8;
  CHECK_FALSE(board.ledger.CheckUnchanged(later).ok());
  // What was answered is not told anew.
  board.ledger.Learn(claims, {{.resource = kName, .units = {later}}});
  CHECK_FALSE(board.ledger.CheckUnchanged(later).ok());
}

TEST_CASE("two calls at the same moment never get two parts of one group", "[deviceplugin]") {
  for (int round = 0; round < 200; ++round) {
    Board board;
    bool first = false, second = false;
    std::thread other([&] { first = board.Take({&board.a}).ok(); });
    second = board.Take({&board.b}).ok();
    other.join();
    CHECK(first != second);
  }
}

TEST_CASE("R27, T7: an answer that names what is not the unit's any more is told from now",
          "[deviceplugin]") {
  Board board;
  board.a.nodes = {"/dev/vfio/vfio", "/dev/vfio/7", "/dev/vfio/devices/vfio3"};
  REQUIRE(board.Take({&board.a}).ok());
  Ledger after(board.ledger.answers());  // a restart, perhaps a reboot
  OfferedUnit now = board.a;
  SECTION("nothing has changed") { CHECK(after.CheckUnchanged(now).ok()); }
  SECTION("the group's number") {
    now.group = 9;
    CHECK_THAT(std::string(after.CheckUnchanged(now).message()),
               Catch::Contains(
                   "0000:11:00.0: group-changed: the kubelet starts this container with an answer "
                   "from before a change (IOMMU group 7 then, 9 now): delete the pod"));
  }
  SECTION("the cdev") {
    now.nodes.back() = "/dev/vfio/devices/vfio4";
    CHECK_THAT(std::string(after.CheckUnchanged(now).message()),
               Catch::Contains("/dev/vfio/devices/vfio3 then, "));
  }
  SECTION("the addresses") {
    now.addresses.push_back("0000:12:00.0");
    CHECK_THAT(std::string(after.CheckUnchanged(now).message()),
               Catch::Contains("addresses 0000:11:00.0 then, 0000:11:00.0,0000:12:00.0 now"));
  }
  SECTION("a node more, by a setting") {
    now.nodes.push_back("/dev/iommu");
    CHECK(after.CheckUnchanged(now).ok());
  }
  SECTION("and a new answer counts from then on") {
    now.group = 9;
    REQUIRE(after.Take(kName, {{&now}}).ok());
    CHECK(after.CheckUnchanged(now).ok());
  }
}

TEST_CASE("a unit that was never given may start with whatever it has", "[deviceplugin]") {
  Board board;
  CHECK(board.ledger.CheckUnchanged(board.a).ok());
}

TEST_CASE("the same answer again is no news for the disk", "[deviceplugin]") {
  Board board;
  REQUIRE(board.Take({&board.a}).ok());
  const uint64_t version = board.ledger.version();
  REQUIRE(board.Take({&board.a}).ok());
  CHECK(board.ledger.version() == version);
}

TEST_CASE("answers tell what a unit stood for besides the device that names it", "[deviceplugin]") {
  const std::string uuid = "c6a1a1f0-0000-4000-8000-000000000001";
  const Answers answers = {
      {"0000:03:00.0", {.resource = kName, .addresses = {"0000:03:00.0", "0000:04:00.0", "?"}}},
      {"0000:05:00.0", {.resource = kName, .addresses = {"0000:05:00.0"}}},
      {uuid, {.resource = kName, .addresses = {uuid}}}};
  CHECK(PartsOf(answers) == Parts{{{kName, "0000:03:00.0"}, {*PciAddress::Parse("0000:04:00.0")}}});
}

}  // namespace
}  // namespace vfio_agent
