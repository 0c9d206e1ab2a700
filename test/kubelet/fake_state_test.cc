// The fake kubelet's books: capacity, health, grace, who is served by whom. The numbers are those
// of the kubelet's own unit tests in the list of behaviours that it stands in for.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "absl/time/clock.h"
#include "test/kubelet/fake_admission.h"
#include "test/kubelet/fake_kubelet.h"
#include "test/kubelet/tiny_plugin.h"

namespace vfio_agent {
namespace {

using Generation = FakeKubelet::Generation;

constexpr char kName[] = "example.com/x";

struct Desk {
  explicit Desk(Generation generation = Generation::k136) {
    dir = (std::filesystem::temp_directory_path() / "fk-XXXXXX").string();
    REQUIRE(::mkdtemp(dir.data()) != nullptr);
    kubelet = std::make_unique<FakeKubelet>(FakeKubelet::Options{
        .dir = dir, .generation = generation, .clock = [this] { return now; }});
    REQUIRE(kubelet->Start().ok());
  }
  ~Desk() {
    kubelet.reset();
    std::filesystem::remove_all(dir);
  }

  std::unique_ptr<TinyPlugin> Serve(const char* name, const std::vector<std::string>& healthy,
                                    const std::vector<std::string>& unhealthy = {}) {
    auto plugin = std::make_unique<TinyPlugin>(dir, name);
    plugin->SetDevices(healthy, unhealthy);
    const int before = Now().messages;
    REQUIRE(plugin->Register(kName).ok());
    REQUIRE(WaitFor([&](const FakeResource& it) { return it.messages > before; }));
    return plugin;
  }
  FakeResource Now() const {
    const FakeResources all = kubelet->Resources();
    return all.contains(kName) ? all.at(kName) : FakeResource();
  }
  bool WaitFor(const std::function<bool(const FakeResource&)>& wanted) const {
    return kubelet->WaitFor(
        [&](const FakeResources& all) { return all.contains(kName) && wanted(all.at(kName)); },
        absl::Seconds(20));
  }
  // Until the Node's status says so.
  bool WaitCapacity(size_t capacity, size_t allocatable) const {
    const FakeCapacity wanted{capacity, allocatable};
    return kubelet->WaitFor(
        [&](const FakeResources& all) {
          if (!all.contains(kName)) return false;
          const FakeResource& it = all.at(kName);
          return FakeCapacity{it.devices.size(), it.Healthy()} == wanted;
        },
        absl::Seconds(20));
  }

  absl::Time now = absl::UnixEpoch();
  std::string dir;
  std::unique_ptr<FakeKubelet> kubelet;
};

TEST_CASE("4.1 item 2: capacity and allocatable are the number of devices", "[kubelet][grpc]") {
  Desk desk;
  const auto plugin = desk.Serve("a.sock", {"1", "2"});
  CHECK(desk.kubelet->Capacity().at(kName) == FakeCapacity{2, 2});
}

TEST_CASE("4.1 item 3: a second socket takes the resource over, with its own ids",
          "[kubelet][grpc]") {
  Desk desk;
  const auto first = desk.Serve("a.sock", {"1", "2"});
  const auto second = desk.Serve("b.sock", {"1", "2"});
  CHECK(desk.kubelet->Capacity().at(kName) == FakeCapacity{2, 2});
  const auto third = desk.Serve("c.sock", {"3"});
  CHECK(desk.kubelet->Capacity().at(kName) == FakeCapacity{1, 1});
  CHECK(desk.Now().devices.contains("3"));
}

TEST_CASE("4.1 item 5: what is unhealthy counts, but cannot be given", "[kubelet][grpc]") {
  Desk desk;
  const auto plugin = desk.Serve("a.sock", {"1", "2"}, {"3"});
  CHECK(desk.kubelet->Capacity().at(kName) == FakeCapacity{3, 2});
  plugin->SetDevices({"1", "2"});
  CHECK(desk.WaitCapacity(2, 2));
  plugin->SetDevices({"1"}, {"2"});
  CHECK(desk.WaitCapacity(2, 1));
  plugin->SetDevices({}, {"2"});
  CHECK(desk.WaitCapacity(1, 0));
}

TEST_CASE("4.1 items 6 and 19: a lost plugin leaves 0 of n, and 0 of 0 five minutes later",
          "[kubelet][grpc]") {
  const auto generation = GENERATE(Generation::k136, Generation::k137);
  Desk desk(generation);
  const auto plugin = desk.Serve("a.sock", {"1", "2"});
  plugin->EndStreams();
  REQUIRE(desk.WaitFor([](const FakeResource& it) { return it.stopped; }));
  CHECK(desk.kubelet->Capacity().at(kName) == FakeCapacity{2, 0});
  desk.now += absl::Minutes(5);
  CHECK(desk.kubelet->Capacity().at(kName) == FakeCapacity{2, 0});
  desk.now += absl::Seconds(1);
  CHECK(desk.kubelet->Capacity().at(kName) == FakeCapacity{0, 0});
  CHECK_FALSE(desk.kubelet->Resources().contains(kName));
}

TEST_CASE("4.1 item 7: nothing is asked of a plugin whose stream has ended", "[kubelet][grpc]") {
  Desk desk;
  const auto plugin = desk.Serve("a.sock", {"1"});
  plugin->EndStreams();
  REQUIRE(desk.WaitFor([](const FakeResource& it) { return it.stopped; }));
  CHECK_THAT(std::string(desk.kubelet->Allocate(kName, {"1"}).status().message()),
             Catch::Contains("has been stopped"));
  CHECK_FALSE(desk.kubelet->PreStart(kName, {"1"}).ok());
  CHECK(plugin->allocate_calls() == 0);
}

TEST_CASE("4.1 item 8: after a restart a resource is known by its name, for five minutes",
          "[kubelet][grpc]") {
  Desk desk;
  { const auto plugin = desk.Serve("a.sock", {"1"}); }
  desk.kubelet->Stop();
  REQUIRE(desk.kubelet->Start().ok());
  CHECK(desk.kubelet->Capacity().at(kName) == FakeCapacity{0, 0});
  CHECK_THAT(std::string(desk.kubelet->Allocate(kName, {"1"}).status().message()),
             Catch::Contains("has been stopped"));
  desk.now += absl::Minutes(6);
  CHECK(desk.kubelet->Capacity().at(kName) == FakeCapacity{0, 0});
  CHECK_THAT(std::string(desk.kubelet->Allocate(kName, {"1"}).status().message()),
             Catch::Contains("is not registered"));
}

TEST_CASE("4.1 item 17: a pod's device is healthy unless a list says otherwise",
          "[kubelet][grpc]") {
  Desk desk;
  const auto plugin = desk.Serve("a.sock", {"1"}, {"2"});
  CHECK(desk.kubelet->PodStatusHealthy("1"));
  CHECK_FALSE(desk.kubelet->PodStatusHealthy("2"));
  plugin->SetDevices({"1"});  // it disappears
  REQUIRE(desk.WaitCapacity(1, 1));
  CHECK(desk.kubelet->PodStatusHealthy("2"));
  plugin->SetDevices({"1"}, {"2"});  // and comes back
  REQUIRE(desk.WaitCapacity(2, 1));
  CHECK_FALSE(desk.kubelet->PodStatusHealthy("2"));
  CHECK(desk.Now().pushed == std::vector<std::string>{"1", "2", "2"});
}

TEST_CASE("R34: a list of more than 4 MiB ends the stream", "[kubelet][grpc]") {
  Desk desk;
  const auto plugin = desk.Serve("a.sock", {"1"});
  v1beta1::ListAndWatchResponse list;
  list.add_devices()->set_id(std::string(4 * 1024 * 1024, 'x'));
  plugin->SetList(std::move(list));
  REQUIRE(desk.WaitFor([](const FakeResource& it) { return it.stopped; }));
  CHECK_THAT(desk.Now().ended_with, Catch::Contains("larger than max"));
  CHECK(desk.kubelet->Capacity().at(kName) == FakeCapacity{1, 0});
}

TEST_CASE("4.2: the survivor of two sockets serves, its health untouched", "[kubelet][grpc]") {
  Desk desk(Generation::k137);
  const auto old = desk.Serve("a.sock", {"1", "2"});
  const auto next = desk.Serve("b.sock", {"1", "2"});
  next->EndStreams();
  REQUIRE(desk.WaitFor([](const FakeResource& it) { return it.endpoint == "a.sock"; }));
  CHECK(desk.kubelet->Capacity().at(kName) == FakeCapacity{2, 2});
  CHECK(desk.kubelet->Allocate(kName, {"1"}).ok());
  CHECK(old->allocate_calls() == 1);
  old->EndStreams();
  CHECK(desk.WaitCapacity(2, 0));
}

TEST_CASE("4.2: a stream's end that comes late takes the next plugin down up to 1.36 only",
          "[kubelet][grpc]") {
  const auto generation = GENERATE(Generation::k136, Generation::k137);
  Desk desk(generation);
  desk.kubelet->HoldDisconnects(true);
  const auto old = desk.Serve("a.sock", {"1"});
  old->EndStreams();
  const auto next = desk.Serve("b.sock", {"1"});
  desk.kubelet->HoldDisconnects(false);
  if (generation == Generation::k136) {
    CHECK(desk.WaitCapacity(1, 0));
  } else {
    next->SetDevices({"1", "2"});
    CHECK(desk.WaitCapacity(2, 2));
    CHECK_FALSE(desk.Now().stopped);
  }
}

TEST_CASE("4.2: the same socket is ignored while the end of its old stream is not noticed",
          "[kubelet][grpc]") {
  Desk desk(Generation::k137);
  desk.kubelet->HoldDisconnects(true);
  const auto plugin = desk.Serve("a.sock", {"1"});
  plugin->EndStreams();
  REQUIRE(plugin->Register(kName).ok());
  CHECK(plugin->streams() == 1);
  desk.kubelet->HoldDisconnects(false);
  CHECK(desk.WaitCapacity(1, 0));
  REQUIRE(plugin->Register(kName).ok());
  CHECK(desk.WaitCapacity(1, 1));
}

TEST_CASE("4.2: of two Register calls at a time for one socket one opens the list",
          "[kubelet][grpc]") {
  Desk desk(Generation::k137);
  desk.kubelet->DelayDial(absl::Milliseconds(200));
  TinyPlugin plugin(desk.dir, "a.sock");
  plugin.SetDevices({"1"});
  absl::Status other;
  std::thread at_the_same_time([&] { other = plugin.Register(kName); });
  CHECK(plugin.Register(kName).ok());
  at_the_same_time.join();
  CHECK(other.ok());
  CHECK(desk.WaitCapacity(1, 1));
  CHECK(plugin.streams() == 1);
  CHECK(desk.Now().registrations == 2);
}

TEST_CASE("4.1 item 14: PreStartContainer is called where the plugin asks for it",
          "[kubelet][grpc]") {
  Desk desk;
  const bool wanted = GENERATE(false, true);
  TinyPlugin plugin(desk.dir, "a.sock");
  if (wanted) plugin.WantPreStart();
  REQUIRE(plugin.Register(kName).ok());
  CHECK(desk.kubelet->PreStart(kName, {"1"}).ok());
  CHECK(plugin.pre_start_calls() == (wanted ? 1 : 0));
}

TEST_CASE("4.1 items 9 and 10: admission takes free and healthy devices, or none",
          "[kubelet][grpc]") {
  Desk desk;
  FakeAdmission admission(*desk.kubelet);
  CHECK_THAT(std::string(admission.Admit("p/c", kName, 1).status().message()),
             Catch::Contains("cannot allocate unregistered device"));
  const auto plugin = desk.Serve("a.sock", {"1", "2"}, {"3"});
  CHECK_THAT(std::string(admission.Admit("q/c", kName, 3).status().message()),
             Catch::Contains("Requested: 3, Available: 2"));
  const auto got = admission.Admit("p/c", kName, 1);
  REQUIRE(got.ok());
  CHECK_THAT(std::string(admission.Admit("p/c", kName, 2).status().message()),
             Catch::Contains("from 1 to 2"));
  plugin->SetDevices({}, {"1", "2", "3"});
  REQUIRE(desk.WaitCapacity(3, 0));
  CHECK_THAT(std::string(admission.Admit("p/c", kName, 1).status().message()),
             Catch::Contains("no healthy devices present"));
  plugin->SetDevices({got->ids[0] == "1" ? "2" : "1"}, {"3", got->ids[0]});
  REQUIRE(desk.WaitCapacity(3, 1));
  CHECK_THAT(std::string(admission.Admit("p/c", kName, 1).status().message()),
             Catch::Contains("previously allocated devices are no longer healthy"));
}

TEST_CASE("4.3: after restarts a container has what it had, and only PreStartContainer is called",
          "[kubelet][grpc]") {
  const auto generation = GENERATE(Generation::k136, Generation::k137);
  Desk desk(generation);
  FakeAdmission admission(*desk.kubelet);
  auto plugin = std::make_unique<TinyPlugin>(desk.dir, "a.sock");
  plugin->WantPreStart();
  plugin->SetDevices({"1", "2"});
  REQUIRE(plugin->Register(kName).ok());
  REQUIRE(desk.WaitCapacity(2, 2));
  const auto had = admission.Admit("p/c", kName, 1);
  REQUIRE(had.ok());
  CHECK(admission.Allocated(kName).size() == 1);
  plugin.reset();
  desk.kubelet->Stop();
  REQUIRE(desk.kubelet->Start().ok());
  TinyPlugin next(desk.dir, "b.sock");
  next.WantPreStart();
  next.SetDevices({"1", "2"});
  REQUIRE(next.Register(kName).ok());
  REQUIRE(desk.WaitCapacity(2, 2));
  const auto again = admission.Admit("p/c", kName, 1);
  REQUIRE(again.ok());
  CHECK(again->ids == had->ids);
  CHECK(again->answer.envs().at("CALL") == "1");
  CHECK(admission.StartContainer("p/c", kName).ok());
  CHECK(next.allocate_calls() == 0);
  CHECK(next.pre_start_calls() == 1);
  admission.Remove("p/c");
  CHECK(admission.Allocated(kName).empty());
}

}  // namespace
}  // namespace vfio_agent
