// What was prepared stays as it was given, whatever the configuration makes of it later.
#include "test/dra/desk.h"

namespace vfio_agent {
namespace {

using Catch::Matchers::Contains;
using nlohmann::json;
const ClaimRef kRef = {.claim_namespace = "team", .name = "vm-gpu", .uid = "u-1"};
const ClaimRef kOther = {.claim_namespace = "team", .name = "vm-two", .uid = "u-2"};

// A desk with one claim that has the first unit.
struct Standing : Desk {
  Standing() {
    Allocate(kRef, {{"gpu", "0000-3b-00-0"}});
    Allocate(kOther, {{"gpu", "0000-3b-00-0"}});
    first = Prepare(kRef);
    REQUIRE(first.ok());
    spec = Spec("u-1");
  }
  using Desk::Allocate;
  void Unselect() {
    offer.units.erase(offer.units.begin());
    Restart();
  }
  ClaimDevices first;
  json spec;
  const OfferedUnit unit = offer.units[0];
};

TEST_CASE("a claim has its unit under whatever name its resource goes by now", "[dra]") {
  Standing desk;
  desk.offer.resource = "nvidia.com/Y";
  desk.Restart();
  CHECK(desk.Prepare(kRef).value() == *desk.first);
  CHECK(desk.Spec("u-1") == desk.spec);
  CHECK_THAT(desk.WhyNot(kOther), Contains("group-split") && Contains("u-1"));
}

TEST_CASE("a claim has its unit though nothing offers it any more", "[dra]") {
  Standing desk;
  desk.Unselect();
  CHECK(desk.Prepare(kRef).value() == *desk.first);
  CHECK(desk.Spec("u-1") == desk.spec);
  // As the device plugin would give it.
  CHECK_THAT(std::string(desk.ledger->Take("nvidia.com/X", {{&desk.unit}}).message()),
             Contains("group-split") && Contains("u-1"));
  REQUIRE(desk.desk->Unprepare(kRef).ok());
  CHECK(desk.ledger->Take("nvidia.com/X", {{&desk.unit}}).ok());
}

TEST_CASE("what a claim was given counts in the boot that it was given in", "[dra]") {
  Standing desk;
  desk.boot = GENERATE("boot-2", "");
  desk.Unselect();
  CHECK_THAT(desk.WhyNot(kRef), Contains("is no device of this node any more"));
  CHECK(desk.ledger->Take("nvidia.com/X", {{&desk.unit}}).ok());
}

TEST_CASE("a claim keeps what it was given where its unit is composed otherwise", "[dra]") {
  Standing desk;
  desk.offer.units[0].addresses.emplace_back("0000:3b:00.1");
  desk.offer.units[0].nodes.emplace_back("/dev/vfio/99");
  SECTION("in the same boot") {
    desk.Restart();
    CHECK(desk.Prepare(kRef).value() == *desk.first);
    CHECK(desk.Spec("u-1") == desk.spec);
  }
  SECTION("in the next, where no file is left that tells of it") {
    desk.boot = "boot-2";
    desk.Restart();
    CHECK_THAT(desk.WhyNot(kRef), Contains("was given 0000:3b:00.0, and the unit is "
                                           "0000:3b:00.0,0000:3b:00.1 now"));
  }
}

TEST_CASE("what stands is looked at in the kernel all the same", "[dra]") {
  Standing desk;
  desk.Unselect();
  SECTION("its driver") {
    desk.tree.SetDriver(kFirst, "nouveau");
    CHECK_THAT(desk.WhyNot(kRef), Contains("driver-changed"));
  }
  SECTION("its group") {
    desk.tree.SetGroup(kFirst, 99);
    CHECK_THAT(desk.WhyNot(kRef), Contains("group-changed"));
  }
  SECTION("its spec") {
    std::filesystem::remove_all(desk.scratch.At("cdi"));
    CHECK_FALSE(desk.Prepare(kRef).ok());
  }
  SECTION("its metadata") {
    std::filesystem::remove_all(desk.scratch.At("metadata"));
    CHECK_FALSE(desk.Prepare(kRef).ok());
  }
  CHECK(desk.scratch.Has("claims/u-1.json"));
}

TEST_CASE("a pod starts again with what it has, though no other would be given it now", "[dra]") {
  Standing desk;
  desk.offer.units[0].healthy = false;
  desk.offer.units[0].reason = "mode: switching to container";
  desk.offer.only_partitions = true;
  desk.offer.partitions = {{kFirst, kSecond}};
  desk.Publish();
  CHECK(desk.Prepare(kRef).value() == *desk.first);
}

TEST_CASE("a claim of an agent that did not note what it gave is held by its unit", "[dra]") {
  Standing desk;
  auto claim = ParseClaim(desk.scratch.Read("claims/u-1.json"));
  REQUIRE(claim.ok());
  claim->devices[0].given.reset();
  REQUIRE(ClaimStore(desk.scratch.path()).Write(*claim).ok());
  desk.Restart();
  CHECK(desk.Prepare(kRef).value() == *desk.first);
  CHECK_FALSE(desk.Prepare(kOther).ok());
  desk.Unselect();
  CHECK_THAT(desk.WhyNot(kRef), Contains("is no device of this node any more"));
}

}  // namespace
}  // namespace vfio_agent
