// Which units go together where a table says so, and bundles that are one unit.
#include "deviceplugin/offer/partition.h"

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "catch2/catch.hpp"
#include "deviceplugin/offer/allocate.h"
#include "deviceplugin/offer/ledger.h"
#include "deviceplugin/offer/verify.h"
#include "test/deviceplugin/support.h"

namespace vfio_agent {
namespace {

std::vector<std::string> Words(const std::string& text) {
  return absl::StrSplit(text, ' ', absl::SkipEmpty());
}

// Eight units, a to h: two boards' halves of four, pairs, and all of them.
Offer Board() {
  Offer offer{.resource = "nvidia.com/X"};
  for (const char* id : {"a", "b", "c", "d", "e", "f", "g", "h"}) {
    offer.units.push_back({.id = id, .healthy = true});
  }
  for (const char* set : {"a b c d e f g h", "a b c d", "e f g h", "a b", "c d", "e f", "g h"}) {
    offer.partitions.push_back(Words(set));
  }
  return offer;
}

std::string Prefer(const Offer& offer, const std::string& available, size_t size,
                   const std::string& must = "") {
  return absl::StrJoin(
      PreferUnits(IndexedOffer(offer),
                  {.available = Words(available), .must = Words(must), .size = size}),
      " ");
}

std::string Check(const Offer& offer, const std::string& ids) {
  const IndexedOffer indexed(offer);
  const auto units = FindUnits(indexed, Words(ids));
  REQUIRE(units.ok());
  const absl::Status status = CheckPartition(offer, *units);
  CHECK((status.ok() || absl::IsFailedPrecondition(status)));
  return std::string(status.message());
}

TEST_CASE("R49: of partitions one is preferred that leaves the larger ones whole",
          "[deviceplugin]") {
  struct Row {
    std::string why, available;
    size_t size;
    std::string must, chosen;
  };
  const Row row =
      GENERATE(Row{"the whole board", "h g f e d c b a", 8, "", "a b c d e f g h"},
               Row{"a half", "a b c d e f g h", 4, "", "a b c d"},
               Row{"the second machine gets the other half", "e f g h", 4, "", "e f g h"},
               Row{"a half is torn already: no other", "b c d e f g h", 2, "", "c d"},
               Row{"one: from a pair that is torn", "a b c d e f h", 1, "", "h"},
               Row{"one: from a half that is torn", "a b e f g h", 1, "", "a"},
               Row{"with what is given in any case", "a b c d e f g h", 2, "f", "e f"},
               Row{"no half is free: pairs", "a b c e f g", 4, "", "a b e f"},
               Row{"three: a pair, and one that tears nothing", "a b c d e f g", 3, "", "e f g"},
               Row{"more than there is", "a b", 3, "", ""});
  INFO(row.why);
  CHECK(Prefer(Board(), row.available, row.size, row.must) == row.chosen);
}

TEST_CASE("R49: a unit that is not healthy is in no preferred partition", "[deviceplugin]") {
  Offer offer = Board();
  offer.units[1].healthy = false;
  CHECK(Prefer(offer, "a b c d e f g h", 4) == "e f g h");
}

TEST_CASE("Allocate of several units that are no partition names those that are",
          "[deviceplugin]") {
  const Offer offer = Board();
  CHECK(Check(offer, "d c b a").empty());
  CHECK(Check(offer, "c").empty());  // one alone always
  CHECK(Check(offer, "b c") ==
        "nvidia.com/X: group-split: b,c are no partition of the configuration: those of 2 are a+b, "
        "c+d, e+f, g+h");
  CHECK(Check(offer, "a b c") ==
        "nvidia.com/X: group-split: a,b,c are no partition of the configuration: there is none of "
        "3, only of 2, 4, 8");
  Offer any = offer;
  any.partitions.clear();
  CHECK(Check(any, "b c").empty());
}

TEST_CASE("a table that does not fit the node lets only one unit go at a time", "[deviceplugin]") {
  Offer offer = Board();
  offer.partitions.clear();
  offer.partitions_fault = "unit 8 is gone";
  CHECK(Check(offer, "a").empty());
  CHECK(Check(offer, "a b") ==
        "nvidia.com/X: group-split: only one unit at a time can be given: unit 8 is gone");
}

// Pairs that are given whole, by device.
Offer Pairs() {
  Offer offer = Board();
  offer.partitions = {Words("a h"), Words("b g"), Words("c f"), Words("d e")};
  offer.only_partitions = true;
  return offer;
}

TEST_CASE("of bundles by device whole ones are preferred, one or several", "[deviceplugin]") {
  CHECK(Prefer(Pairs(), "b c d e f g h", 2) == "b g");
  CHECK(Prefer(Pairs(), "a b c d e f g h", 4) == "a b g h");
  CHECK(Prefer(Pairs(), "a b c d e f g h", 3).empty());
  CHECK(Prefer(Pairs(), "a b c d e f g h", 1).empty());
  CHECK(Prefer(Pairs(), "a b c d", 2) == "");
}

TEST_CASE("a part of a bundle by device is refused, and two bundles are not", "[deviceplugin]") {
  CHECK(Check(Pairs(), "h a").empty());
  CHECK(Check(Pairs(), "a b g h").empty());
  CHECK(Check(Pairs(), "a") ==
        "nvidia.com/X: group-split: a is a part of a bundle, which is given whole: a+h. Ask for 2, "
        "or a multiple");
  // Two of two pairs: to ask for 2 is what was done.
  CHECK_THAT(Check(Pairs(), "a b"),
             Catch::Contains("group-split: a,b is a part of a bundle") &&
                 Catch::Contains("The number is right, but these are parts of several bundles") &&
                 !Catch::Contains("Ask for"));
}

// A GPU of group 27 with a NIC of group 31.
OfferedUnit Bundle() {
  OfferedUnit unit = TestUnit("0000:11:00.0");
  unit.groups = {unit.group, 31};
  unit.addresses.push_back("0000:15:00.0");
  unit.members.push_back("0000:15:00.0");
  unit.nodes.push_back("/dev/vfio/31");
  unit.pairs = {"0000:11:00.0=0000:15:00.0"};
  return unit;
}

TEST_CASE("a container that gets a bundle gets all addresses, all groups and the pairs",
          "[deviceplugin]") {
  const Offer offer = TestOffer("nvidia.com/a.pair", {Bundle()});
  const v1beta1::ContainerAllocateResponse answer = MakeAllocation(offer, {&offer.units[0]});
  CHECK(answer.envs().at("PCI_RESOURCE_NVIDIA_COM_A_PAIR") == "0000:11:00.0,0000:15:00.0");
  CHECK(answer.envs().at("VFIO_AGENT_PAIRS_NVIDIA_COM_A_PAIR") == "0000:11:00.0=0000:15:00.0");
  CHECK(answer.envs().size() == 2);
  std::vector<std::string> nodes;
  for (const auto& node : answer.devices()) nodes.push_back(node.host_path());
  CHECK(nodes == std::vector<std::string>{"/dev/vfio/vfio", "/dev/vfio/27", "/dev/vfio/31"});
}

TEST_CASE("R38: each part of a bundle is in one of its groups, or Allocate fails",
          "[deviceplugin]") {
  UnitTree node;
  const OfferedUnit unit = Bundle();
  node.Add(unit);
  node.SetGroup("0000:15:00.0", 31);
  CHECK(VerifyUnit(node.tree(), unit).ok());
  node.SetGroup("0000:15:00.0", 32);
  CHECK(VerifyUnit(node.tree(), unit).message() ==
        "0000:11:00.0: group-changed: 0000:15:00.0 is in IOMMU group 32 now, was in 27");
}

TEST_CASE("R33: a bundle takes all of its groups, and gives all of them back", "[deviceplugin]") {
  Ledger ledger;
  const OfferedUnit bundle = Bundle();
  OfferedUnit other = TestUnit("0000:15:00.1");
  other.group = 31;
  REQUIRE(ledger.Take("nvidia.com/pair", {{&bundle}}).ok());
  CHECK(ledger.Grants().size() == 2);
  CHECK(ledger.Take("nvidia.com/nic", {{&other}}).message() ==
        "group-split: 0000:11:00.0 of IOMMU group 31 went to another container, so 0000:15:00.1 "
        "cannot be given: a group has one owner");
  ledger.GiveBack({{&bundle}});
  CHECK(ledger.Grants().empty());
  REQUIRE(ledger.Start("nvidia.com/pair", {&bundle}).ok());
  CHECK(ledger.Grants().size() == 2);
  CHECK_FALSE(ledger.Start("nvidia.com/nic", {&other}).ok());
}

}  // namespace
}  // namespace vfio_agent
