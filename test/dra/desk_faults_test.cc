// What goes wrong with claims, and what changes while they are prepared.
#include "sysfs/clock.h"
#include "test/dra/desk.h"

namespace vfio_agent {
namespace {

using Catch::Matchers::Contains;
using nlohmann::json;
const ClaimRef kRef = {.claim_namespace = "team", .name = "vm-gpu", .uid = "u-1"};
const ClaimRef kOther = {.claim_namespace = "team", .name = "vm-two", .uid = "u-2"};

TEST_CASE("a device of a request with alternatives goes to the request itself", "[dra]") {
  Desk desk;
  desk.Allocate(kRef, {{"gpu/large", "0000-3b-00-0"}});
  const auto devices = desk.Prepare(kRef);
  REQUIRE(devices.ok());
  CHECK(devices->at(0).requests == std::vector<std::string>{"gpu"});
}

TEST_CASE("while a record cannot be read no new claim is given anything", "[dra]") {
  Desk desk;
  desk.Allocate(kRef, {{"gpu", "0000-3b-00-0"}});
  desk.Allocate(kOther, {{"gpu", "0000-af-00-0"}});
  REQUIRE(desk.Prepare(kOther).ok());
  desk.scratch.Write("claims/u-9.json", "{}");
  SECTION("the next agent tells what to do") {
    desk.Restart();
    REQUIRE(desk.problems.size() == 1);
    CHECK_THAT(desk.problems[0],
               Contains("u-9.json is no prepared claim") && Contains("kubectl get resourceclaims"));
  }
  SECTION("the same agent") {}
  CHECK_THAT(desk.WhyNot(kRef), Contains("u-9.json is no prepared claim"));
  CHECK_FALSE(desk.scratch.Has("claims/u-1.json"));
  CHECK(desk.Prepare(kOther).ok());
  REQUIRE(desk.desk->Unprepare({.claim_namespace = "team", .name = "x", .uid = "u-9"}).ok());
  CHECK(desk.Prepare(kRef).ok());
}

TEST_CASE("a record that can be read again is its claim's", "[dra]") {
  Desk desk;
  desk.Allocate(kRef, {{"gpu", "0000-3b-00-0"}});
  desk.Allocate(kOther, {{"gpu", "0000-3b-00-0"}});
  REQUIRE(desk.Prepare(kRef).ok());
  const std::string record = desk.scratch.Read("claims/u-1.json");
  desk.scratch.Write("claims/u-1.json", "");
  desk.Restart();
  CHECK_FALSE(desk.Prepare(kOther).ok());
  desk.scratch.Write("claims/u-1.json", record);
  CHECK_THAT(desk.WhyNot(kOther), Contains("group-split") && Contains("u-1"));
}

TEST_CASE("who looks while a claim is written sees its units as given", "[dra]") {
  Desk desk;
  desk.Allocate(kRef, {{"gpu", "0000-3b-00-0"}});
  const Tenancy nobody;
  Tenancy listed;
  listed.claims.list = {{.unit = kFirst}};
  std::vector<Grant> during;
  desk.recorded = [&] {
    during = OpenGrants(desk.ledger->Grants(), listed, MonotonicNow() + absl::Hours(1));
  };
  REQUIRE(desk.Prepare(kRef).ok());
  REQUIRE(during.size() == 1);
  CHECK(during[0].unit == kFirst);
  CHECK(during[0].group == desk.offer.units[0].group);
  // A look that began before the record stood settles nothing; the next one does.
  const std::vector<Grant> after = desk.ledger->Grants();
  CHECK(OpenGrants(after, listed, after.at(0).at - absl::Seconds(1)).size() == 1);
  CHECK(OpenGrants(after, listed, after.at(0).at + absl::Seconds(1)).empty());
  desk.ledger->Drop(after);
  CHECK(desk.ledger->Grants().empty());
  CHECK_FALSE(desk.Allocate(kFirst).ok());
}

TEST_CASE("a claim that is taken back, or fails, leaves no grant", "[dra]") {
  Desk desk;
  desk.Allocate(kRef, {{"gpu", "0000-3b-00-0"}});
  SECTION("it is taken back") {
    REQUIRE(desk.Prepare(kRef).ok());
    REQUIRE(desk.desk->Unprepare(kRef).ok());
  }
  SECTION("it fails") {
    desk.scratch.Write("cdi", "in the way");
    REQUIRE_FALSE(desk.Prepare(kRef).ok());
    CHECK_FALSE(desk.scratch.Has("metadata/u-1"));
  }
  CHECK(desk.ledger->Grants().empty());
}

TEST_CASE("a claim whose unit is given up while it is written gets nothing", "[dra]") {
  Desk desk;
  desk.Allocate(kRef, {{"gpu", "0000-3b-00-0"}});
  const OfferedUnit first = desk.offer.units[0];
  SECTION("it is on no list any more") {
    desk.recorded = [&] {
      desk.offer.units.erase(desk.offer.units.begin());
      desk.Publish();
    };
  }
  SECTION("another driver has it") {
    desk.recorded = [&] { desk.tree.SetDriver(kFirst, "nouveau"); };
  }
  CHECK_FALSE(desk.Prepare(kRef).ok());
  CHECK(desk.Spec("u-1").is_null());
  CHECK_FALSE(desk.scratch.Has("metadata/u-1"));
  CHECK_FALSE(desk.scratch.Has("claims/u-1.json"));
  CHECK(desk.desk->prepared().empty());
  CHECK(desk.ledger->Take("nvidia.com/X", {{&first}}).ok());
}

TEST_CASE("a claim in use keeps its files where they cannot be written anew", "[dra]") {
  Desk desk;
  desk.Allocate(kRef, {{"gpu", "0000-3b-00-0"}});
  REQUIRE(desk.Prepare(kRef).ok());
  std::filesystem::remove_all(desk.scratch.At("metadata/u-1/gpu"));
  desk.scratch.Write("metadata/u-1/gpu", "in the way");
  CHECK_FALSE(desk.Prepare(kRef).ok());
  CHECK_FALSE(desk.Spec("u-1").is_null());
  CHECK(desk.scratch.Has("claims/u-1.json"));
  CHECK_FALSE(desk.Allocate(kFirst).ok());
}

TEST_CASE("a device that waits to be bound is not said to be gone", "[dra]") {
  Desk desk;
  desk.waiting = {{"0000-99-00-0", "0000:99:00.0 is with nouveau"}};
  desk.Publish();
  desk.Allocate(kRef, {{"gpu", "0000-99-00-0"}});
  const absl::Status status = desk.Prepare(kRef).status();
  CHECK(absl::IsUnavailable(status));
  CHECK(status.message() ==
        "0000-99-00-0 waits to be bound: 0000:99:00.0 is with nouveau; the kubelet tries again");
  desk.waiting.begin()->second = "";
  desk.Publish();
  CHECK(desk.WhyNot(kRef) == "0000-99-00-0 waits to be bound; the kubelet tries again");
}

TEST_CASE("a claim that is not what was prepared any more is refused", "[dra]") {
  Desk desk;
  desk.Allocate(kRef, {{"gpu", "0000-3b-00-0"}});
  REQUIRE(desk.Prepare(kRef).ok());
  SECTION("another one of that name") {
    desk.source.claims["vm-gpu"]["metadata"]["uid"] = "u-7";
    CHECK_THAT(desk.WhyNot(kRef), Contains("is another one now"));
  }
  SECTION("other devices") {
    desk.Allocate(kRef, {{"gpu", "0000-af-00-0"}});
    CHECK_THAT(desk.WhyNot(kRef), Contains("other devices"));
  }
  SECTION("it is gone") {
    desk.source.claims.clear();
    CHECK_THAT(desk.WhyNot(kRef), Contains("the API server has none"));
  }
  CHECK(desk.scratch.Has("claims/u-1.json"));
  CHECK_FALSE(desk.Allocate(kFirst).ok());
}

TEST_CASE("what a claim was given is not written over by what its unit is now", "[dra]") {
  Desk desk;
  desk.Allocate(kRef, {{"gpu", "0000-3b-00-0"}});
  REQUIRE(desk.Prepare(kRef).ok());
  desk.offer.units[0].addresses.emplace_back("0000:3b:00.1");
  desk.Publish();
  CHECK(desk.ledger->answers().at(kFirst).addresses == std::vector<std::string>{kFirst});
}

TEST_CASE("a spec in another directory is removed with its claim", "[dra]") {
  Desk desk;
  desk.Allocate(kRef, {{"gpu", "0000-3b-00-0"}});
  REQUIRE(desk.Prepare(kRef).ok());
  desk.cdi = "elsewhere";
  desk.Restart();
  REQUIRE(desk.desk->Unprepare(kRef).ok());
  CHECK(desk.Spec("u-1").is_null());
}

TEST_CASE("claims of a driver of another name are told when the agent starts", "[dra]") {
  Desk desk;
  desk.Allocate(kRef, {{"gpu", "0000-3b-00-0"}});
  REQUIRE(desk.Prepare(kRef).ok());
  desk.Restart();
  CHECK(desk.problems.empty());
  desk.driver = "gpu.example.com";
  desk.Restart();
  REQUIRE(desk.problems.size() == 1);
  CHECK_THAT(desk.problems[0], Contains("team/vm-gpu was prepared as the driver vfio-agent") &&
                                   Contains("dra.driverName"));
}

}  // namespace
}  // namespace vfio_agent
