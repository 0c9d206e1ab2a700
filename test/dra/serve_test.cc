// How a resource is served: in one way, and never in both at once.
#include <algorithm>
#include <catch2/catch.hpp>

#include "agent/config/config.h"
#include "deviceplugin/offer/ledger.h"
#include "deviceplugin/offer/offer.h"
#include "sysfs/status.h"
#include "test/support/facts.h"

namespace vfio_agent {
namespace {

using Catch::Matchers::Contains;

constexpr char kH100[] = "nvidia.com/GH100_H100_SXM5_80GB";

// Two GPUs in group 17, one in 18, all of them bound.
struct Board {
  NodeFacts facts = Node({Gpu("0000:3b:00.0", 17, "vfio-pci"), Gpu("0000:5e:00.0", 17, "vfio-pci"),
                          Gpu("0000:91:00.0", 18, "vfio-pci")});
  Policy policy = DefaultPolicy();
  Custody custody{.tenancy = Tenancy{}};

  explicit Board(Serve serve) { policy.resources[0].serve = serve; }
  void Held(const std::string& unit, const std::string& container) {
    custody.tenancy->claims.list.push_back({"team", "vm", container, kH100, unit});
  }
  Plan Now() const { return MakePlan(facts, policy, TestNames(), custody); }
  std::vector<Offer> Offers(Serve serve, const std::vector<Offer>& before = {}) const {
    return MakeOffers(Now(), facts, before, {.serve = serve}, &*custody.tenancy, absl::UnixEpoch());
  }
};

OfferedUnit UnitOf(const std::vector<Offer>& offers, const std::string& id) {
  const auto unit = std::ranges::find(offers.at(0).units, id, &OfferedUnit::id);
  REQUIRE(unit != offers[0].units.end());
  return *unit;
}

TEST_CASE("a resource is offered in the way that it is served, and in no other", "[dra]") {
  const Board board(Serve::kDra);
  CHECK(board.Offers(Serve::kDevicePlugin).empty());
  REQUIRE(board.Offers(Serve::kDra).size() == 1);
  CHECK(board.Offers(Serve::kDra)[0].serve == Serve::kDra);
  CHECK(Board(Serve::kDevicePlugin).Offers(Serve::kDra).empty());
}

TEST_CASE("what the kubelet was offered stays on its list until no pod can have it", "[dra]") {
  const std::vector<Offer> before = Board(Serve::kDevicePlugin).Offers(Serve::kDevicePlugin);
  const std::vector<Offer> after = Board(Serve::kDra).Offers(Serve::kDevicePlugin, before);
  REQUIRE(after.at(0).units.size() == 3);
  for (const OfferedUnit& unit : after[0].units) CHECK_FALSE(unit.healthy);
}

TEST_CASE("a ResourceClaim's unit is held, and its siblings are withheld", "[dra]") {
  Board board(Serve::kDra);
  board.Held("0000:3b:00.0", "");
  const std::vector<Unit> units = board.Now().resources.at(0).units;
  CHECK(units[0].state == UnitState::kHeld);
  CHECK(units[0].reason == "ResourceClaim team/vm");
  CHECK(units[1].state == UnitState::kWithheld);
  CHECK_THAT(units[1].reason, Contains("ResourceClaim team/vm has 0000:3b:00.0"));
  CHECK(units[2].state == UnitState::kReady);
}

TEST_CASE("a ResourceClaim's group is not released", "[dra]") {
  Board board(Serve::kDra);
  board.custody = Asked();
  board.custody.inquiry->claims.list = {{"team", "vm", "", kH100, "0000:91:00.0"}};
  board.custody.seen_bound = {At("0000:91:00.0")};
  CHECK_THAT(WhyHeld(board.custody, board.facts, 18), Contains("ResourceClaim team/vm"));
}

TEST_CASE("who came the other way keeps a unit from those who come now", "[dra]") {
  const Serve serve = GENERATE(Serve::kDra, Serve::kDevicePlugin);
  const bool dra = serve == Serve::kDra;
  Board board(serve);
  board.Held("0000:91:00.0", dra ? "compute" : "");
  const OfferedUnit other = UnitOf(board.Offers(serve), "0000:91:00.0");
  CHECK_FALSE(other.healthy);
  CHECK_THAT(other.reason, Contains("held") && Contains(dra ? "pod team/vm (container compute)"
                                                            : "ResourceClaim team/vm"));
  board.custody.tenancy->claims.list.clear();
  board.Held("0000:91:00.0", dra ? "" : "compute");
  CHECK(UnitOf(board.Offers(serve), "0000:91:00.0").healthy);
}

TEST_CASE("while the kubelet has never told of its pods, no claim gets what one may have",
          "[dra]") {
  Board board(Serve::kDra);
  board.Held("0000:3b:00.0", "");
  board.custody.tenancy->claims.known = false;
  board.custody.tenancy->claims.why_unknown = "the kubelet does not answer";
  const OfferedUnit lone = UnitOf(board.Offers(Serve::kDra), "0000:91:00.0");
  CHECK_FALSE(lone.healthy);
  CHECK(lone.reason == "held: a pod perhaps: the kubelet does not answer");
  CHECK(UnitOf(board.Offers(Serve::kDra), "0000:3b:00.0").healthy);
  // The kubelet does not need us to know what it has given itself.
  Board plugin(Serve::kDevicePlugin);
  plugin.custody.tenancy->claims = {.known = false, .why_unknown = "the kubelet does not answer"};
  CHECK(UnitOf(plugin.Offers(Serve::kDevicePlugin), "0000:91:00.0").healthy);
}

TEST_CASE("name-collision: entries of one resource must agree how it is served", "[dra]") {
  Board board(Serve::kDevicePlugin);
  ResourceRule other = board.policy.resources[0];
  other.select = {{.address = At("0000:91:00.0")}};
  other.serve = Serve::kDra;
  board.policy.resources[0].exclude = other.select;
  board.policy.resources.push_back(other);
  const Plan plan = board.Now();
  CHECK(Codes(plan.refusals) == "name-collision 0000:91:00.0");
  CHECK_THAT(plan.refusals.at(0).text, Contains("serve: device-plugin"));
  board.policy.resources[1].suffix = "_CLAIMS";
  CHECK(board.Now().refusals.empty());
}

TEST_CASE("the configuration says how an entry is served", "[dra]") {
  const auto serve = [](const std::string& text) {
    const auto config = ParseConfig("resources: [{preset: nvidia" + text + "}]", "c.yaml");
    REQUIRE(config.ok());
    return config->policy.resources.at(0).serve;
  };
  CHECK(serve("") == Serve::kDevicePlugin);
  CHECK(serve(", serve: device-plugin") == Serve::kDevicePlugin);
  CHECK(serve(", serve: dra") == Serve::kDra);
  const auto wrong = ParseConfig("resources: [{preset: nvidia, serve: both}]", "c.yaml");
  CHECK_THAT(Message(wrong.status()), Contains("want device-plugin or dra"));
}

TEST_CASE("the driver's name is one of Kubernetes and of CDI", "[dra]") {
  const auto ok = [](const std::string& name) {
    return ParseConfig("dra: {driverName: \"" + name + "\"}", "c.yaml").ok();
  };
  CHECK(ok("vfio-agent"));
  CHECK(ok("gpu.example.com"));
  CHECK(ok(std::string(63, 'a')));
  for (const char* name : {"", "A", "1a", "-a", "a-", "a.", ".a", "a..b", "a.-b", "a b", "a/b"}) {
    CAPTURE(name);
    CHECK_FALSE(ok(name));
  }
  CHECK_FALSE(ok(std::string(64, 'a')));
}

TEST_CASE("a claim that holds groups can hold them again, and no one else can", "[dra]") {
  const OfferedUnit first{.id = "0000:3b:00.0", .addresses = {"0000:3b:00.0"}, .group = 17};
  const OfferedUnit sibling{.id = "0000:5e:00.0", .addresses = {"0000:5e:00.0"}, .group = 17};
  Ledger ledger;
  REQUIRE(ledger.Hold("u-1", {{kH100, &first}}).ok());
  CHECK(ledger.Hold("u-1", {{kH100, &first}}).ok());
  CHECK_THAT(Message(ledger.Hold("u-2", {{kH100, &sibling}})), Contains("group-split"));
  CHECK_THAT(Message(ledger.Take(kH100, {{&sibling}})), Contains("uid u-1"));
  CHECK_THAT(Message(ledger.Start(kH100, {&sibling})), Contains("uid u-1"));
  ledger.LetGo("u-2");
  CHECK_FALSE(ledger.Take(kH100, {{&sibling}}).ok());
  ledger.LetGo("u-1");
  CHECK(ledger.Take(kH100, {{&sibling}}).ok());
  CHECK_FALSE(ledger.Hold("u-2", {{kH100, &first}}).ok());
}

TEST_CASE("what a claim's units stood for is remembered, as that of pods", "[dra]") {
  const OfferedUnit board{
      .id = "0000:3b:00.0", .addresses = {"0000:3b:00.0", "0000:5e:00.0"}, .group = 17};
  Ledger ledger;
  REQUIRE(ledger.Hold("u-1", {{kH100, &board}}).ok());
  const Parts parts = PartsOf(ledger.answers());
  CHECK(parts.at({kH100, "0000:3b:00.0"}) == std::vector<PciAddress>{At("0000:5e:00.0")});
}

TEST_CASE("what a claim has comes on no list of the kubelet's when an agent starts", "[dra]") {
  const Answers answers = {
      {"0000:3b:00.0", {.resource = kH100, .group = 17, .addresses = {"0000:3b:00.0"}}}};
  PodClaims claims;
  claims.list = {{"team", "vm", "", kH100, "0000:3b:00.0"}};
  CHECK(OffersOfPods(claims, answers).empty());
  claims.list[0].container = "compute";
  CHECK(OffersOfPods(claims, answers).size() == 1);
}

}  // namespace
}  // namespace vfio_agent
