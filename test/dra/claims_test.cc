#include <zlib.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "agent/dra/claim.h"
#include "agent/dra/claim_store.h"
#include "test/dra/claim_json.h"
#include "test/dra/scratch.h"

namespace vfio_agent {
namespace {

using Catch::Matchers::Contains;
using nlohmann::json;

const ClaimRef kRef = {.claim_namespace = "team", .name = "vm-gpu", .uid = "u-1"};

absl::StatusOr<Allocation> Parse(const json& object) {
  return ParseAllocation(object.dump(), kRef, "vfio-agent", "node-1");
}

std::string WhyNot(const json& object) { return std::string(Parse(object).status().message()); }

TEST_CASE("whom a claim is for is known where it is reserved for one pod alone", "[dra]") {
  json object = ClaimJson(kRef, {{"gpu", "0000-3b-00-0"}});
  json& reserved = object["status"]["reservedFor"];
  reserved = json::array({{{"resource", "pods"}, {"name", "vm"}, {"uid", "u-7"}}});
  SECTION("one pod") {
    CHECK(OnlyPodOf(object.dump(), kRef) == ClaimPod{.name = "vm", .uid = "u-7"});
  }
  SECTION("two of them") {
    reserved.push_back({{"resource", "pods"}, {"name", "vm-2"}, {"uid", "u-8"}});
    CHECK_FALSE(OnlyPodOf(object.dump(), kRef));
  }
  SECTION("nobody, or what is no pod") {
    reserved = GENERATE(json(), json::array(), json::array({nullptr}),
                        json::array({{{"resource", "jobs"}, {"name", "vm"}, {"uid", "u-7"}}}),
                        json::array({{{"resource", "pods"}, {"name", "../x"}, {"uid", "u-7"}}}));
    CHECK_FALSE(OnlyPodOf(object.dump(), kRef));
  }
  SECTION("another claim of that name") {
    object["metadata"]["uid"] = "u-9";
    CHECK_FALSE(OnlyPodOf(object.dump(), kRef));
  }
}

TEST_CASE("a claim's devices are those of this driver", "[dra]") {
  json object = ClaimJson(kRef, {{"gpu", "0000-3b-00-0"}});
  object["status"]["allocation"]["devices"]["results"].push_back(
      {{"request", "nic"}, {"driver", "other"}, {"pool", "x"}, {"device", "eth0"}});
  const auto allocation = Parse(object);
  REQUIRE(allocation.ok());
  CHECK(allocation->devices ==
        std::vector<AllocatedDevice>{{.request = "gpu", .device = "0000-3b-00-0"}});
  CHECK(allocation->pod_claim_name.empty());
}

TEST_CASE("a claim made from a template has the pod's own name for it", "[dra]") {
  json object = ClaimJson(kRef, {{"gpu/large", "0000-3b-00-0"}});
  object["metadata"]["annotations"]["resource.kubernetes.io/pod-claim-name"] = "gpus";
  const auto allocation = Parse(object);
  REQUIRE(allocation.ok());
  CHECK(allocation->pod_claim_name == "gpus");
  CHECK(MainRequest(allocation->devices[0].request) == "gpu");
}

TEST_CASE("a claim that is another one by now is refused", "[dra]") {
  json object = ClaimJson(kRef, {{"gpu", "0000-3b-00-0"}});
  object["metadata"]["uid"] = "u-2";
  CHECK_THAT(WhyNot(object), Contains("team/vm-gpu is another one now"));
}

TEST_CASE("a claim without an allocation is refused", "[dra]") {
  json object = ClaimJson(kRef, {});
  CHECK_THAT(WhyNot(object), Contains("has no device of vfio-agent"));
  object.erase("status");
  CHECK_THAT(WhyNot(object), Contains("is not allocated"));
}

TEST_CASE("a claim that asks for what cannot be given is refused", "[dra]") {
  json object = ClaimJson(kRef, {{"gpu", "0000-3b-00-0"}});
  json& devices = object["status"]["allocation"]["devices"];
  json& result = devices["results"][0];
  SECTION("a device of another node") {
    result["pool"] = "node-2";
    CHECK_THAT(WhyNot(object), Contains("of the pool node-2, and this node's is node-1"));
  }
  SECTION("access beside the owner") {
    result["adminAccess"] = true;
    CHECK_THAT(WhyNot(object), Contains("adminAccess"));
  }
  SECTION("parameters") {
    devices["config"] = json::array({{{"opaque", {{"driver", "vfio-agent"}}}}});
    CHECK_THAT(WhyNot(object), Contains("which takes none"));
    devices["config"][0]["opaque"]["driver"] = "other";
    CHECK(Parse(object).ok());
  }
}

TEST_CASE("names in a claim lead to no other path", "[dra]") {
  const std::string name = GENERATE("", "..", "../x", "a/../../b", "/a", "a/", "A", "a b");
  json object = ClaimJson(kRef, {{name, "0000-3b-00-0"}});
  CHECK(Parse(object).status().code() == absl::StatusCode::kDataLoss);
  object = ClaimJson(kRef, {{"gpu", name}});
  CHECK(Parse(object).status().code() == absl::StatusCode::kDataLoss);
  CHECK_FALSE(IsPlainUid(name == "A" ? "A/" : name));
}

TEST_CASE("a claim nested deeper than any is none", "[dra]") {
  std::string text = ClaimJson(kRef, {{"gpu", "0000-3b-00-0"}}).dump();
  REQUIRE(ParseAllocation(text, kRef, "vfio-agent", "node-1").ok());
  text.insert(1, R"("x":)" + std::string(10'000, '[') + std::string(10'000, ']') + ",");
  CHECK(absl::IsDataLoss(ParseAllocation(text, kRef, "vfio-agent", "node-1").status()));
}

TEST_CASE("what is no ResourceClaim is refused", "[dra]") {
  const std::string text = GENERATE("", "null", "[]", "{", "{\"kind\": \"ResourceClaim\"}",
                                    "{\"kind\": 1, \"metadata\": []}");
  CHECK(ParseAllocation(text, kRef, "vfio-agent", "node-1").status().code() ==
        absl::StatusCode::kDataLoss);
}

// The text of a record that somebody else has written.
std::string WithChecksum(json object) {
  const std::string text = object.dump();
  object["checksum"] = absl::StrFormat(
      "%08x",
      ::crc32(0, reinterpret_cast<const Bytef*>(text.data()), static_cast<uInt>(text.size())));
  return object.dump();
}

PreparedClaim Prepared(const std::string& uid) {
  return {.ref = {.claim_namespace = "team", .name = "vm-" + uid, .uid = uid},
          .pool = "node-1",
          .pod_claim_name = "gpus",
          .devices = {{.request = "gpu",
                       .device = "0000-3b-00-0",
                       .resource = "nvidia.com/X",
                       .unit = "0000:3b:00.0",
                       .share_id = "s"}}};
}

TEST_CASE("a prepared claim is read as it was written", "[dra]") {
  const auto claim = ParseClaim(ClaimToText(Prepared("u-1")));
  REQUIRE(claim.ok());
  CHECK(*claim == Prepared("u-1"));
}

TEST_CASE("a prepared claim that was changed on disk is none", "[dra]") {
  std::string text = ClaimToText(Prepared("u-1"));
  SECTION("another unit") { text.replace(text.find("3b:00.0"), 2, "3c"); }
  SECTION("half of it") { text.resize(text.size() / 2); }
  CHECK(ParseClaim(text).status().code() == absl::StatusCode::kDataLoss);
}

TEST_CASE("a prepared claim of a later version is not guessed at", "[dra]") {
  std::string text = ClaimToText(Prepared("u-1"));
  text.replace(text.find("claim/v2"), 8, "claim/v3");
  CHECK(ParseClaim(text).status().code() == absl::StatusCode::kUnimplemented);
}

TEST_CASE("prepared claims outlive the agent, and one that is broken hides no other", "[dra]") {
  const Scratch scratch;
  const ClaimStore store(scratch.path());
  std::vector<std::string> problems;
  REQUIRE(store.Read(problems)->empty());
  REQUIRE(store.Write(Prepared("u-1")).ok());
  REQUIRE(store.Write(Prepared("u-2")).ok());
  scratch.Write("claims/u-3.json", "{}");
  scratch.Write("claims/u-4.json", ClaimToText(Prepared("u-1")));
  const auto claims = ClaimStore(scratch.path()).Read(problems);
  REQUIRE(claims.ok());
  CHECK(claims->size() == 2);
  CHECK(problems.size() == 2);
  REQUIRE(store.Forget("u-1").ok());
  REQUIRE(store.Forget("u-1").ok());
  CHECK(store.Read(problems)->size() == 1);
}

PreparedClaim WithGiven() {
  PreparedClaim claim = Prepared("u-1");
  claim.boot_id = "boot-1";
  claim.devices[0].given = {.addresses = {"0000:3b:00.0", "0000:86:00.0"}, .groups = {29, 40}};
  return claim;
}

TEST_CASE("what the units of a claim were is kept with it, or is not known", "[dra]") {
  const PreparedClaim claim = WithGiven();
  CHECK(ParseClaim(ClaimToText(claim)).value() == claim);
  const std::string wrong = GENERATE(
      R"({"addresses": ["0000:3b:00.0"], "groups": []})", R"({"addresses": [], "groups": [1]})",
      R"({"addresses": [1], "groups": [1]})", R"({"addresses": ["0000:3b:00.0"], "groups": [-1]})",
      R"({"addresses": ["../0000:3b:00.0"], "groups": [1]})",
      R"({"addresses": ["0000:3b:00.0"], "groups": [1], "mdev_type": "nvidia-222"})", "1");
  CAPTURE(wrong);
  json object = json::parse(ClaimToText(claim));
  object.erase("checksum");
  object["devices"][0]["given"] = json::parse(wrong);
  CHECK(ParseClaim(WithChecksum(object)).status().code() == absl::StatusCode::kDataLoss);
}

TEST_CASE("a claim of an agent that did not note what units were is read", "[dra]") {
  json object = json::parse(ClaimToText(Prepared("u-1")));
  object.erase("checksum");
  object["schema"] = "vfio-agent/claim/v1";
  const auto claim = ParseClaim(WithChecksum(object));
  REQUIRE(claim.ok());
  CHECK(*claim == Prepared("u-1"));
}

TEST_CASE("all that a ResourceClaim was given is held, in its boot by the devices alone", "[dra]") {
  const Scratch scratch;
  REQUIRE(ClaimStore(scratch.path()).Write(WithGiven()).ok());
  PodClaims claims;
  const std::string boot = GENERATE("boot-1", "boot-2", "");
  AddResourceClaims(scratch.path(), boot, claims);
  REQUIRE(claims.list.size() == 1);
  const PciAddress other = *PciAddress::Parse("0000:86:00.0");
  CHECK(HasPart(claims.parts, claims.list[0], other));
  CHECK(claims.given.size() == (boot == "boot-1" ? 2 : 0));
}

TEST_CASE("what a ResourceClaim has counts as held, beside what pods have", "[dra]") {
  const Scratch scratch;
  REQUIRE(ClaimStore(scratch.path()).Write(Prepared("u-1")).ok());
  PodClaims claims;
  claims.list = {{.pod_namespace = "z", .pod = "p", .container = "c", .unit = "0000:af:00.0"}};
  AddResourceClaims(scratch.path(), "", claims);
  REQUIRE(claims.list.size() == 2);
  CHECK(std::is_sorted(claims.list.begin(), claims.list.end()));
  CHECK(claims.list[0].unit == "0000:3b:00.0");
  CHECK(claims.list[0].resource == "nvidia.com/X");
  CHECK(IsResourceClaim(claims.list[0]));
  CHECK_FALSE(IsResourceClaim(claims.list[1]));
  CHECK(claims.known);
}

TEST_CASE("where a record cannot be read it is not known who has what", "[dra]") {
  const Scratch scratch;
  std::string why = "u-2.json is no prepared claim: no claim of vfio-agent/claim/v2";
  SECTION("a file") {
    REQUIRE(ClaimStore(scratch.path()).Write(Prepared("u-1")).ok());
    scratch.Write("claims/u-2.json", "{}");
  }
  SECTION("the directory") {
    scratch.Write("claims", "in the way");
    why = "claims";
  }
  PodClaims claims;
  AddResourceClaims(scratch.path(), "", claims);
  CHECK_FALSE(claims.known);
  CHECK_THAT(claims.why_unknown, Contains(why));
  CHECK(claims.list.size() == (scratch.Has("claims/u-1.json") ? 1 : 0));
}

TEST_CASE("a record's driver and directory lead nowhere else", "[dra]") {
  PreparedClaim claim = Prepared("u-1");
  claim.driver = "vfio-agent";
  claim.cdi_dir = "/var/run/cdi";
  CHECK(ParseClaim(ClaimToText(claim)).value() == claim);
  SECTION("driver") { claim.driver = "../x"; }
  SECTION("directory") { claim.cdi_dir = "cdi"; }
  CHECK(ParseClaim(ClaimToText(claim)).status().code() == absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace vfio_agent
