#include "test/dra/desk.h"

namespace vfio_agent {
namespace {

using Catch::Matchers::Contains;
using nlohmann::json;
const ClaimRef kRef = {.claim_namespace = "team", .name = "vm-gpu", .uid = "u-1"};
const ClaimRef kOther = {.claim_namespace = "team", .name = "vm-two", .uid = "u-2"};

TEST_CASE("a claim is given its devices by a spec of its own", "[dra]") {
  Desk desk;
  desk.Allocate(kRef, {{"gpu", "0000-3b-00-0"}});
  const auto devices = desk.Prepare(kRef);
  REQUIRE(devices.ok());
  CHECK(*devices == std::vector<ClaimDevice>{{.requests = {"gpu"},
                                              .pool = "node-1",
                                              .device = "0000-3b-00-0",
                                              .cdi_ids = {"vfio-agent/claim=u-1-0000-3b-00-0"}}});
  const json spec = desk.Spec("u-1");
  CHECK(spec["kind"] == "vfio-agent/claim");
  CHECK(spec["devices"][0]["name"] == "u-1-0000-3b-00-0");
  const json& nodes = spec["devices"][0]["containerEdits"]["deviceNodes"];
  CHECK(nodes.size() == desk.offer.units[0].nodes.size());
  CHECK(nodes[0]["path"] == desk.offer.units[0].nodes[0]);
  CHECK(desk.events.back().kind == ClaimEvent::Kind::kPrepared);
  CHECK(desk.events.back().units == std::vector<std::string>{kFirst});
}

TEST_CASE("a virt-launcher finds one file for each request, with the device's address", "[dra]") {
  Desk desk;
  desk.Allocate(kRef, {{"gpu", "0000-3b-00-0"}, {"nic", "0000-af-00-0"}});
  std::string where = "resourceclaims/vm-gpu";
  SECTION("of a claim that it names") {}
  SECTION("of a claim made from a template") {
    desk.source
        .claims["vm-gpu"]["metadata"]["annotations"]["resource.kubernetes.io/pod-claim-name"] =
        "gpus";
    where = "resourceclaimtemplates/gpus";
  }
  REQUIRE(desk.Prepare(kRef).ok());
  const json spec = desk.Spec("u-1");
  const json& mount = spec["devices"][1]["containerEdits"]["mounts"][0];
  CHECK(mount["containerPath"] ==
        "/var/run/kubernetes.io/dra-device-attributes/" + where + "/nic/vfio-agent-metadata.json");
  CHECK(mount["hostPath"] == desk.scratch.At("metadata/u-1/nic/metadata.json"));
  const json metadata = json::parse(desk.scratch.Read("metadata/u-1/nic/metadata.json"));
  CHECK(metadata["apiVersion"] == "metadata.resource.k8s.io/v1alpha1");
  REQUIRE(metadata["requests"].size() == 1);
  REQUIRE(metadata["requests"][0]["devices"].size() == 1);
  const json& device = metadata["requests"][0]["devices"][0];
  CHECK(device["name"] == "0000-af-00-0");
  CHECK(device["attributes"]["resource.kubernetes.io/pciBusID"]["string"] == kSecond);
}

TEST_CASE("the file of a request with several devices comes with the first of them", "[dra]") {
  Desk desk;
  desk.Allocate(kRef, {{"gpu", "0000-3b-00-0"}, {"gpu", "0000-af-00-0"}});
  REQUIRE(desk.Prepare(kRef).ok());
  const json spec = desk.Spec("u-1");
  CHECK(spec["devices"][0]["containerEdits"].contains("mounts"));
  CHECK_FALSE(spec["devices"][1]["containerEdits"].contains("mounts"));
}

TEST_CASE("a claim that is prepared already is answered while the API server is away", "[dra]") {
  Desk desk;
  desk.Allocate(kRef, {{"gpu", "0000-3b-00-0"}});
  const auto first = desk.Prepare(kRef);
  REQUIRE(first.ok());
  desk.source.away = true;
  // A reboot has taken what was in /var/run.
  std::filesystem::remove_all(desk.scratch.At("cdi"));
  SECTION("by the same agent") {}
  SECTION("by the next one") { desk.Restart(); }
  const auto second = desk.Prepare(kRef);
  REQUIRE(second.ok());
  CHECK(*second == *first);
  CHECK_FALSE(desk.Spec("u-1").is_null());
}

TEST_CASE("a claim is taken back without the API server, also by the next agent", "[dra]") {
  Desk desk;
  desk.Allocate(kRef, {{"gpu", "0000-3b-00-0"}});
  desk.Allocate(kOther, {{"gpu", "0000-3b-00-0"}});
  REQUIRE(desk.Prepare(kRef).ok());
  desk.source.claims.erase(kRef.name);
  SECTION("by the same agent") {}
  SECTION("by the next one") { desk.Restart(); }
  REQUIRE(desk.desk->Unprepare(kRef).ok());
  CHECK(desk.Spec("u-1").is_null());
  CHECK_FALSE(desk.scratch.Has("metadata/u-1"));
  CHECK_FALSE(desk.scratch.Has("claims/u-1.json"));
  CHECK(desk.events.back().kind == ClaimEvent::Kind::kUnprepared);
  CHECK(desk.desk->Unprepare(kRef).ok());
  CHECK(desk.Prepare(kOther).ok());
}

TEST_CASE("two claims never get one group", "[dra]") {
  Desk desk;
  desk.offer.units[1].group = desk.offer.units[0].group;
  desk.Publish();
  desk.Allocate(kRef, {{"gpu", "0000-3b-00-0"}});
  desk.Allocate(kOther, {{"gpu", "0000-af-00-0"}});
  desk.tree.SetGroup(kSecond, desk.offer.units[0].group);
  REQUIRE(desk.Prepare(kRef).ok());
  SECTION("of the same agent") {}
  SECTION("of the next one") { desk.Restart(); }
  CHECK_THAT(desk.WhyNot(kOther), Contains("group-split") && Contains("u-1"));
  CHECK(desk.Spec("u-2").is_null());
  CHECK(desk.events.back().kind == ClaimEvent::Kind::kPrepareFailed);
}

TEST_CASE("a claim and a pod of the device plugin never get one group", "[dra]") {
  Desk desk;
  desk.Allocate(kRef, {{"gpu", "0000-3b-00-0"}});
  SECTION("the pod was first") {
    REQUIRE(desk.Allocate(kFirst).ok());
    CHECK_THAT(desk.WhyNot(kRef), Contains("group-split"));
    CHECK_FALSE(desk.scratch.Has("claims/u-1.json"));
  }
  SECTION("the claim was first") {
    REQUIRE(desk.Prepare(kRef).ok());
    CHECK_THAT(std::string(desk.Allocate(kFirst).message()), Contains("group-split"));
    CHECK(desk.Allocate(kSecond).ok());
    REQUIRE(desk.desk->Unprepare(kRef).ok());
    CHECK(desk.Allocate(kFirst).ok());
  }
}

TEST_CASE("what is not as it was offered is not given", "[dra]") {
  Desk desk;
  desk.Allocate(kRef, {{"gpu", "0000-3b-00-0"}});
  SECTION("it is unhealthy") {
    desk.offer.units[0].healthy = false;
    desk.offer.units[0].reason = "aer-fatal: 2 fatal PCIe errors";
    desk.Publish();
    CHECK_THAT(desk.WhyNot(kRef), Contains("0000:3b:00.0 cannot be given: aer-fatal"));
  }
  SECTION("another driver has it since") {
    desk.tree.SetDriver(kFirst, "nouveau");
    CHECK_THAT(desk.WhyNot(kRef), Contains("driver-changed"));
  }
  SECTION("it is no device any more") {
    desk.Allocate(kRef, {{"gpu", "0000-99-00-0"}});
    CHECK_THAT(desk.WhyNot(kRef), Contains("0000-99-00-0 is no device of this node any more"));
  }
  SECTION("it is there twice") {
    desk.Allocate(kRef, {{"a", "0000-3b-00-0"}, {"b", "0000-3b-00-0"}});
    CHECK_THAT(desk.WhyNot(kRef), Contains("twice"));
  }
  SECTION("only sets of units are given") {
    desk.offer.only_partitions = true;
    desk.offer.partitions = {{kFirst, kSecond}};
    desk.Publish();
    CHECK_FALSE(desk.Prepare(kRef).ok());
    desk.Allocate(kRef, {{"a", "0000-3b-00-0"}, {"b", "0000-af-00-0"}});
    CHECK(desk.Prepare(kRef).ok());
    return;
  }
  CHECK(desk.Spec("u-1").is_null());
  CHECK_FALSE(desk.scratch.Has("claims/u-1.json"));
}

TEST_CASE("an API server that does not tell is named, and asking again helps", "[dra]") {
  Desk desk;
  CHECK_THAT(desk.WhyNot(kRef),
             Contains("the API server does not tell of ResourceClaim team/vm-gpu"));
  desk.Allocate(kRef, {{"gpu", "0000-3b-00-0"}});
  CHECK(desk.Prepare(kRef).ok());
}

TEST_CASE("a claim that is taken back while the API server is asked gets nothing", "[dra]") {
  Desk desk;
  desk.source.keep = true;
  ClaimDevices answer = std::vector<ClaimDevice>();
  desk.desk->Prepare(kRef, [&answer](const ClaimDevices& devices) { answer = devices; });
  REQUIRE(desk.desk->Unprepare(kRef).ok());
  REQUIRE(desk.source.kept.size() == 1);
  desk.source.kept[0](ClaimJson(kRef, {{"gpu", "0000-3b-00-0"}}).dump());
  CHECK(answer.status().code() == absl::StatusCode::kAborted);
  CHECK_FALSE(desk.scratch.Has("claims/u-1.json"));
  CHECK(desk.Allocate(kFirst).ok());
}

TEST_CASE("a claim that cannot be noted on disk is not given", "[dra]") {
  Desk desk;
  desk.Allocate(kRef, {{"gpu", "0000-3b-00-0"}});
  SECTION("no record") { desk.scratch.Write("claims", "in the way"); }
  SECTION("no spec") { desk.scratch.Write("cdi", "in the way"); }
  CHECK_FALSE(desk.Prepare(kRef).ok());
  CHECK_FALSE(desk.scratch.Has("claims/u-1.json"));
  CHECK(desk.desk->prepared().empty());
}

TEST_CASE("before the node was read nothing is given, and asking again helps", "[dra]") {
  const Scratch scratch;
  FakeSource source;
  source.claims[kRef.name] = ClaimJson(kRef, {{"gpu", "0000-3b-00-0"}});
  ClaimDesk desk({.pool = "node-1", .state_dir = scratch.path(), .source = &source});
  ClaimDevices answer = std::vector<ClaimDevice>();
  desk.Prepare(kRef, [&answer](const ClaimDevices& devices) { answer = devices; });
  CHECK_FALSE(answer.ok());
}

}  // namespace
}  // namespace vfio_agent
