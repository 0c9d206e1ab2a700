#include "agent/dra/dra_driver.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <condition_variable>
#include <mutex>

#include "absl/time/clock.h"
#include "deviceplugin/grpc/quiet_grpc.h"
#include "sysfs/clock.h"
#include "sysfs/fd.h"
#include "test/deviceplugin/support.h"
#include "test/dra/claim_json.h"
#include "test/dra/scratch.h"
#include "test/kubelet/fake_dra.h"

namespace vfio_agent {
namespace {

using Catch::Matchers::Contains;

constexpr absl::Duration kLimit = absl::Seconds(20);
const ClaimRef kRef = {.claim_namespace = "team", .name = "vm-gpu", .uid = "u-1"};
const ClaimRef kOther = {.claim_namespace = "team", .name = "vm-two", .uid = "u-2"};
const ClaimRef kUnknown = {.claim_namespace = "team", .name = "gone", .uid = "u-3"};

class Claims final : public ClaimSource {
 public:
  void FetchClaim(const ClaimRef& claim, Done done) override {
    {
      const std::lock_guard lock(mutex_);
      asked_ = true;
      if (silent) kept_.push_back(std::move(done));
      changed_.notify_all();
    }
    if (silent) return;
    if (claim == kRef) return done(ClaimJson(kRef, {{"gpu", "0000-3b-00-0"}}).dump());
    if (claim == kOther) return done(ClaimJson(kOther, {{"gpu", "0000-af-00-0"}}).dump());
    done(absl::NotFoundError("there is none"));
  }
  bool WaitAsked() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, absl::ToChronoMilliseconds(kLimit), [this] { return asked_; });
  }
  bool silent = false;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool asked_ = false;
  std::vector<Done> kept_;
};

// The driver of an agent, and a kubelet that has taken it.
struct Node {
  QuietGrpc quiet;
  Scratch scratch;
  UnitTree tree;
  Ledger ledger;
  Claims claims;
  Offer offer = TestOffer("nvidia.com/X", {TestUnit("0000:3b:00.0"), TestUnit("0000:af:00.0")});
  std::vector<std::string> notes;
  std::unique_ptr<DraDriver> driver;

  explicit Node(bool with_directory = true) {
    if (with_directory) std::filesystem::create_directories(scratch.At("registry"));
    tree.AddAll(offer);
    driver = std::make_unique<DraDriver>(
        DraDriver::Options{.places = {.driver = "vfio-agent",
                                      .cdi_dir = scratch.At("cdi"),
                                      .metadata_dir = scratch.At("metadata")},
                           .pool = "node-1",
                           .registry_dir = scratch.At("registry"),
                           .state_dir = scratch.path(),
                           .tree = &tree.tree(),
                           .ledger = &ledger,
                           .source = &claims},
        [] {});
    Publish();
    Step(MonotonicNow());
  }
  void Publish() {
    std::vector<DraDevice> devices;
    for (const OfferedUnit& unit : offer.units) {
      devices.push_back({.name = DraDeviceName(unit.id),
                         .resource = offer.resource,
                         .unit = unit.id,
                         .taint = unit.healthy ? "" : "aer-fatal",
                         .reason = unit.reason});
    }
    driver->Set({.offers = {offer}, .devices = std::move(devices)});
  }
  DraDriver::News Step(absl::Time now) {
    DraDriver::News news = driver->Step(now);
    notes.insert(notes.end(), news.notes.begin(), news.notes.end());
    return news;
  }
  FakeDra::Options Kubelet() const { return {.dir = scratch.At("registry")}; }
};

TEST_CASE("a kubelet finds the driver and prepares claims of either version", "[dra]") {
  Node node;
  FakeDra::Options options = node.Kubelet();
  SECTION("v1") {}
  SECTION("v1beta1") { options.known = {"v1beta1.DRAPlugin"}; }
  FakeDra kubelet(options);
  REQUIRE(kubelet.Register("vfio-agent", kLimit) == "");
  CHECK(kubelet.info().type() == "DRAPlugin");
  CHECK(kubelet.version() == options.known.front());
  const auto answers = kubelet.Prepare({kRef});
  REQUIRE(answers.ok());
  const FakeDra::Answer& answer = answers->at("u-1");
  REQUIRE(answer.error == "");
  CHECK(answer.devices[0].requests == std::vector<std::string>{"gpu"});
  CHECK(answer.devices[0].pool == "node-1");
  CHECK(answer.devices[0].cdi_ids == std::vector<std::string>{"vfio-agent/claim=u-1-0000-3b-00-0"});
  const auto errors = kubelet.Unprepare({kRef, kUnknown});
  REQUIRE(errors.ok());
  CHECK(errors->at("u-1") == "");
  CHECK(errors->at("u-3") == "");
  CHECK(node.driver->prepared().empty());
}

TEST_CASE("one claim of a call that fails hinders no other", "[dra]") {
  Node node;
  FakeDra kubelet(node.Kubelet());
  REQUIRE(kubelet.Register("vfio-agent", kLimit) == "");
  const auto answers = kubelet.Prepare({kRef, kUnknown, kOther});
  REQUIRE(answers.ok());
  CHECK(answers->at("u-1").error == "");
  CHECK(answers->at("u-2").error == "");
  CHECK_THAT(answers->at("u-3").error, Contains("there is none"));
  CHECK(answers->at("u-3").devices.empty());
  const DraDriver::News news = node.Step(MonotonicNow());
  CHECK(news.claims.size() == 3);
}

TEST_CASE("what the kubelet made of the driver is told", "[dra]") {
  Node node;
  FakeDra::Options options = node.Kubelet();
  SECTION("it was taken") {
    FakeDra kubelet(options);
    REQUIRE(kubelet.Register("vfio-agent", kLimit) == "");
    CHECK(node.driver->registered());
  }
  SECTION("it was not") {
    options.refuse = "not you";
    FakeDra kubelet(options);
    REQUIRE(kubelet.Register("vfio-agent", absl::Milliseconds(200)) == "not you");
    CHECK_FALSE(node.driver->registered());
    node.Step(MonotonicNow());
    CHECK_THAT(node.notes.front(), Contains("does not take the DRA driver vfio-agent: not you"));
  }
}

TEST_CASE("a kubelet that refuses the driver again and again is told of once, until it takes it",
          "[dra]") {
  Node node;
  FakeDra::Options options = node.Kubelet();
  options.refuse = "not you";
  for (int i = 0; i < 3; ++i) {
    FakeDra refuses(options);
    REQUIRE(refuses.Register("vfio-agent", absl::Milliseconds(200)) == "not you");
    node.Step(MonotonicNow());
  }
  CHECK(node.notes.size() == 1);
  CHECK_THAT(node.driver->failure(), Contains("vfio-agent: not you"));
  FakeDra takes(node.Kubelet());
  REQUIRE(takes.Register("vfio-agent", kLimit) == "");
  CHECK(node.driver->failure() == "");
  FakeDra refuses(options);
  REQUIRE(refuses.Register("vfio-agent", absl::Milliseconds(200)) == "not you");
  node.Step(MonotonicNow());
  CHECK(node.notes.size() == 3);
}

TEST_CASE("each server has a socket of its own, and one that is gone is replaced", "[dra]") {
  Node node;
  FakeDra kubelet(node.Kubelet());
  REQUIRE(kubelet.Register("vfio-agent", kLimit) == "");
  const std::string first = kubelet.info().endpoint();
  std::filesystem::remove(first);
  node.Step(MonotonicNow());
  REQUIRE(kubelet.Register("vfio-agent", kLimit) == "");
  CHECK(kubelet.info().endpoint() != first);
  CHECK(kubelet.Prepare({kRef})->at("u-1").error == "");
}

TEST_CASE("sockets that killed agents have left are removed, and no others", "[dra]") {
  Node node;
  const auto leave = [&node](const std::string& name) {
    const Fd fd(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::ranges::copy(node.scratch.At("registry/" + name), address.sun_path);
    REQUIRE(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
  };
  leave("vfio-0123abcd-0123abcd-1.sock");
  leave("other.sock");
  DraDriver next({.places = {.driver = "vfio-agent"},
                  .pool = "node-1",
                  .registry_dir = node.scratch.At("registry"),
                  .state_dir = node.scratch.path(),
                  .tree = &node.tree.tree(),
                  .ledger = &node.ledger,
                  .source = &node.claims},
                 [] {});
  next.Set({});
  next.Step(MonotonicNow());
  CHECK_FALSE(node.scratch.Has("registry/vfio-0123abcd-0123abcd-1.sock"));
  CHECK(node.scratch.Has("registry/other.sock"));
  CHECK(std::filesystem::exists(node.driver->socket()));
  CHECK(std::filesystem::exists(next.socket()));
}

TEST_CASE("a kubelet whose directory comes later finds the driver, too", "[dra]") {
  Node node(false);
  REQUIRE(node.notes.size() == 1);
  CHECK_THAT(node.notes.front(), Contains("plugins_registry"));
  CHECK(node.driver->NextDeadline() < absl::InfiniteFuture());
  node.Step(node.driver->NextDeadline());
  CHECK(node.notes.size() == 1);  // it is told once
  std::filesystem::create_directories(node.scratch.At("registry"));
  node.Step(node.driver->NextDeadline());
  FakeDra kubelet(node.Kubelet());
  CHECK(kubelet.Register("vfio-agent", kLimit) == "");
}

TEST_CASE("the kubelet is told of a device that fails, and why", "[dra]") {
  Node node;
  FakeDra kubelet(node.Kubelet());
  REQUIRE(kubelet.Register("vfio-agent", kLimit) == "");
  kubelet.WatchHealth();
  REQUIRE(kubelet.WaitHealth("0000-3b-00-0", v1alpha1::HEALTHY, kLimit));
  node.offer.units[0].healthy = false;
  node.offer.units[0].reason = "aer-fatal: 2 fatal PCIe errors";
  node.Publish();
  REQUIRE(kubelet.WaitHealth("0000-3b-00-0", v1alpha1::UNHEALTHY, kLimit));
  const v1alpha1::DeviceHealth health = kubelet.HealthOf("0000-3b-00-0");
  CHECK(health.device().pool_name() == "node-1");
  CHECK(health.message() == "aer-fatal: 2 fatal PCIe errors");
  CHECK(health.health_check_timeout_seconds() == 30);
  CHECK(health.last_updated_time() > 0);
  CHECK(kubelet.HealthOf("0000-af-00-0").health() == v1alpha1::HEALTHY);
}

TEST_CASE("an agent that stops leaves no call open, whatever the API server does", "[dra]") {
  Node node;
  node.claims.silent = true;
  FakeDra kubelet(node.Kubelet());
  REQUIRE(kubelet.Register("vfio-agent", kLimit) == "");
  kubelet.WatchHealth();
  REQUIRE(kubelet.WaitMessages(1, kLimit));
  absl::Status status;
  std::thread caller([&] { status = kubelet.Prepare({kRef}).status(); });
  REQUIRE(node.claims.WaitAsked());
  node.driver->Shutdown(absl::Seconds(5));
  caller.join();
  CHECK(absl::IsUnavailable(status));
  CHECK_FALSE(std::filesystem::exists(kubelet.info().endpoint()));
}

TEST_CASE("what one agent has prepared the next one holds", "[dra]") {
  Node node;
  FakeDra kubelet(node.Kubelet());
  REQUIRE(kubelet.Register("vfio-agent", kLimit) == "");
  REQUIRE(kubelet.Prepare({kRef})->at("u-1").error == "");
  Ledger ledger;
  DraDriver next({.places = {.driver = "vfio-agent"},
                  .pool = "node-1",
                  .registry_dir = node.scratch.At("none"),
                  .state_dir = node.scratch.path(),
                  .tree = &node.tree.tree(),
                  .ledger = &ledger,
                  .source = &node.claims},
                 [] {});
  next.Set({.offers = {node.offer}});
  CHECK(next.prepared().size() == 1);
  CHECK_FALSE(ledger.Take("nvidia.com/X", {{&node.offer.units[0]}}).ok());
  CHECK(ledger.Take("nvidia.com/X", {{&node.offer.units[1]}}).ok());
}

}  // namespace
}  // namespace vfio_agent
