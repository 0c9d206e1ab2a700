// Plugins against the fake kubelet: what happens on a node where all is well.
#include "deviceplugin/kubelet/plugins.h"

#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <set>

#include "absl/time/clock.h"
#include "catch2/catch.hpp"
#include "test/deviceplugin/support.h"
#include "test/kubelet/fake_kubelet.h"

namespace vfio_agent {
namespace {

using Kind = PluginEvent::Kind;
using Generation = FakeKubelet::Generation;

constexpr char kGpu[] = "nvidia.com/GH100_H100_SXM5_80GB";

Offer TwoGpus() {
  return TestOffer(kGpu, {TestUnit("0000:11:00.0", 0), TestUnit("0000:91:00.0", 1)});
}

TEST_CASE("R1: a resource is served, registered, listed and allocated", "[deviceplugin][grpc]") {
  TempDir dir;
  FakeKubelet kubelet(
      {.dir = dir.path(), .generation = GENERATE(Generation::k136, Generation::k137)});
  REQUIRE(kubelet.Start().ok());
  UnitTree node;
  node.AddAll(TwoGpus());
  PluginLoop loop(dir.path(), node.tree());
  loop.plugins().Set({TwoGpus()});
  CHECK_FALSE(loop.plugins().AllRegistered());
  REQUIRE(loop.RunUntil([&] { return loop.plugins().AllRegistered(); }));
  REQUIRE(kubelet.WaitHealthy(kGpu, 2, absl::Seconds(10)));

  const FakeResource resource = kubelet.Resources().at(kGpu);
  CHECK(resource.registrations == 1);
  CHECK(resource.devices.at("0000:11:00.0") == FakeDevice{.healthy = true, .numa = {0}});
  CHECK(resource.devices.at("0000:91:00.0") == FakeDevice{.healthy = true, .numa = {1}});

  const auto answer = kubelet.Allocate(kGpu, {"0000:91:00.0", "0000:11:00.0"});
  REQUIRE(answer.ok());
  CHECK(answer->envs().at("PCI_RESOURCE_NVIDIA_COM_GH100_H100_SXM5_80GB") ==
        "0000:11:00.0,0000:91:00.0");
  REQUIRE(answer->devices_size() == 3);
  CHECK(answer->devices(0).host_path() == "/dev/vfio/vfio");
  CHECK(answer->devices(1).host_path() == "/dev/vfio/27");
  CHECK(answer->devices(2).host_path() == "/dev/vfio/155");
  REQUIRE(loop.RunUntil([&] { return loop.Count(Kind::kAllocated) == 1; }));
  CHECK(loop.events().back().ids == std::vector<std::string>{"0000:91:00.0", "0000:11:00.0"});
  CHECK(loop.events().back().took > absl::ZeroDuration());

  CHECK(kubelet.PreStart(kGpu, {"0000:11:00.0"}).ok());
  const auto preferred = kubelet.Preferred(kGpu, {"0000:91:00.0", "0000:11:00.0"}, {}, 1);
  REQUIRE(preferred.ok());
  CHECK(*preferred == std::vector<std::string>{"0000:11:00.0"});
}

TEST_CASE("R24: the kubelet is told of a change at once, and of no change never",
          "[deviceplugin][grpc]") {
  TempDir dir;
  FakeKubelet kubelet({.dir = dir.path()});
  REQUIRE(kubelet.Start().ok());
  UnitTree node;
  PluginLoop loop(dir.path(), node.tree());
  loop.plugins().Set({TwoGpus()});
  REQUIRE(loop.RunUntil([&] { return kubelet.WaitHealthy(kGpu, 2, absl::ZeroDuration()); }));

  Offer same = TwoGpus();
  same.units[0].path = {"pci0000:10"};  // nothing that the kubelet is told
  loop.plugins().Set({same});
  Offer sick = TwoGpus();
  sick.units[0].healthy = false;
  loop.plugins().Set({sick});
  REQUIRE(kubelet.WaitHealthy(kGpu, 1, absl::Seconds(10)));
  CHECK(kubelet.Resources().at(kGpu).messages == 2);
  CHECK(kubelet.Resources().at(kGpu).devices.size() == 2);
  loop.plugins().Set({TwoGpus()});
  REQUIRE(kubelet.WaitHealthy(kGpu, 2, absl::Seconds(10)));
}

TEST_CASE("R37, R53: what is unknown, sick or no longer true is refused with the reason",
          "[deviceplugin][grpc]") {
  TempDir dir;
  FakeKubelet kubelet({.dir = dir.path()});
  REQUIRE(kubelet.Start().ok());
  UnitTree node;
  node.AddAll(TwoGpus());
  Offer offer = TwoGpus();
  offer.units[1].healthy = false;
  offer.units[1].reason = "its config space reads all ones";
  PluginLoop loop(dir.path(), node.tree());
  loop.plugins().Set({offer});
  REQUIRE(loop.RunUntil([&] { return kubelet.WaitHealthy(kGpu, 1, absl::ZeroDuration()); }));

  const auto unknown = kubelet.Allocate(kGpu, {"0000:77:00.0"});
  CHECK(absl::IsInvalidArgument(unknown.status()));
  const auto sick = kubelet.Allocate(kGpu, {"0000:91:00.0"});
  CHECK(absl::IsFailedPrecondition(sick.status()));
  CHECK_THAT(std::string(sick.status().message()),
             Catch::Contains("0000:91:00.0") && Catch::Contains("all ones"));

  node.SetDriver("0000:11:00.0", "nvidia");
  const auto taken = kubelet.Allocate(kGpu, {"0000:11:00.0"});
  CHECK(absl::IsFailedPrecondition(taken.status()));
  CHECK_THAT(std::string(taken.status().message()), Catch::Contains("bound to nvidia"));
  CHECK(absl::IsFailedPrecondition(kubelet.PreStart(kGpu, {"0000:11:00.0"})));
  REQUIRE(loop.RunUntil([&] { return loop.Count(Kind::kPreStartRefused) == 1; }));
  CHECK(loop.Count(Kind::kAllocateRefused) == 3);
  CHECK(loop.Count(Kind::kAllocated) == 0);
}

TEST_CASE("R8, R21: each resource has a server of its own, on a socket for its owner alone",
          "[deviceplugin][grpc]") {
  TempDir dir;
  FakeKubelet kubelet({.dir = dir.path()});
  REQUIRE(kubelet.Start().ok());
  UnitTree node;
  PluginLoop loop(dir.path(), node.tree());
  loop.plugins().Set({TwoGpus(), TestOffer("nvidia.com/GA100_A100", {TestUnit("0000:21:00.0")}),
                      TestOffer("nvidia.com/NEVER_HERE", {})});
  REQUIRE(loop.RunUntil([&] { return loop.plugins().AllRegistered(); }));
  CHECK(kubelet.WaitHealthy("nvidia.com/GA100_A100", 1, absl::Seconds(10)));
  CHECK(kubelet.WaitHealthy(kGpu, 2, absl::Seconds(10)));

  const auto status = loop.plugins().Status();
  REQUIRE(status.size() == 2);
  CHECK(status[0].resource == "nvidia.com/GA100_A100");
  CHECK(status[0].streams == 1);
  CHECK(status[0].socket != status[1].socket);
  for (const PluginStatus& each : status) {
    struct stat info = {};
    REQUIRE(::stat(each.socket.c_str(), &info) == 0);
    CHECK((info.st_mode & 0777) == 0600);
  }

  SECTION("and a resource whose units are all gone is served on with none") {
    loop.plugins().Set({TwoGpus(), TestOffer("nvidia.com/GA100_A100", {})});
    CHECK(kubelet.WaitFor(
        [](const FakeResources& resources) {
          const FakeResource& resource = resources.at("nvidia.com/GA100_A100");
          return resource.devices.empty() && !resource.stopped;
        },
        absl::Seconds(10)));
    CHECK(loop.plugins().AllRegistered());
  }
}

TEST_CASE("R6: the longest name of a resource fits, and a directory that is too long is an error",
          "[deviceplugin][grpc]") {
  const std::string longest = "nvidia.com/" + std::string(63, 'X');
  TempDir dir;
  UnitTree node;
  const Offer offer = TestOffer(longest, {TestUnit("0000:11:00.0")});

  SECTION("in a directory as deep as the kubelet's") {
    const std::string deep = dir.path() + "/var/lib/kubelet/device-plugins";
    std::filesystem::create_directories(deep);
    FakeKubelet kubelet({.dir = deep});
    REQUIRE(kubelet.Start().ok());
    PluginLoop loop(deep, node.tree());
    loop.plugins().Set({offer});
    CHECK(loop.RunUntil([&] { return kubelet.WaitHealthy(longest, 1, absl::ZeroDuration()); }));
  }
  SECTION("in one that leaves no room") {
    const std::string deep = dir.path() + "/" + std::string(80, 'd');
    std::filesystem::create_directories(deep);
    PluginLoop loop(deep, node.tree());
    loop.plugins().Set({offer});
    REQUIRE(loop.RunUntil([&] { return loop.Count(Kind::kRegisterFailed) == 1; }));
    CHECK_THAT(loop.LastText(Kind::kRegisterFailed), Catch::Contains("at most 107 bytes"));
    CHECK_THAT(loop.plugins().Status()[0].last_error, Catch::Contains("at most 107 bytes"));
  }
}

TEST_CASE("R22, T4: a shutdown closes streams, removes the sockets and is quick",
          "[deviceplugin][grpc]") {
  TempDir dir;
  FakeKubelet kubelet({.dir = dir.path()});
  REQUIRE(kubelet.Start().ok());
  UnitTree node;
  PluginLoop loop(dir.path(), node.tree());
  std::vector<Offer> offers;
  for (int i = 0; i < 8; ++i) {
    offers.push_back(TestOffer("nvidia.com/MODEL_" + std::to_string(i),
                               {TestUnit("0000:1" + std::to_string(i) + ":00.0")}));
  }
  loop.plugins().Set(offers);
  REQUIRE(loop.RunUntil([&] { return loop.plugins().AllRegistered(); }));
  const std::string socket = loop.plugins().Status()[0].socket;

  const absl::Time start = absl::Now();
  loop.plugins().Shutdown(absl::Seconds(1));
  CHECK(absl::Now() - start < absl::Seconds(5));
  CHECK_FALSE(std::filesystem::exists(socket));
  CHECK(kubelet.WaitFor(
      [](const FakeResources& resources) { return resources.at("nvidia.com/MODEL_0").stopped; },
      absl::Seconds(10)));
  CHECK(kubelet.Resources().at("nvidia.com/MODEL_0").devices.size() == 1);
}

using Lists = std::map<std::string, std::vector<std::string>>;  // ids by resource

std::vector<Offer> ToOffers(const Lists& lists) {
  std::vector<Offer> offers;
  for (const auto& [resource, ids] : lists) {
    std::vector<OfferedUnit> units;
    for (const std::string& id : ids) units.push_back(TestUnit(id));
    offers.push_back(TestOffer(resource, units));
  }
  return offers;
}

TEST_CASE("R25: a unit that changes its resource is in no two lists at any moment",
          "[deviceplugin]") {
  const std::string a = "0000:11:00.0", b = "0000:12:00.0", c = "0000:13:00.0", d = "0000:14:00.0";
  struct Change {
    Lists now, next;
    size_t sets;
  };
  const auto [now, next, sets] = GENERATE_COPY(values<Change>({
      {{}, {{"x/A", {a}}, {"x/B", {b}}}, 2},
      {{{"x/A", {a}}, {"x/B", {b}}}, {{"x/A", {a, c}}, {"x/B", {}}}, 2},
      {{{"x/A", {a, b}}}, {{"x/A", {a}}, {"x/B", {b}}}, 3},
      {{{"x/B", {a, b}}}, {{"x/A", {a}}, {"x/B", {b}}}, 3},
      {{{"x/B", {a, b}}}, {{"x/A", {a, b}}}, 3},                                      // B ends
      {{{"x/A", {a}}, {"x/B", {b}}}, {{"x/A", {b}}, {"x/B", {a}}}, 4},                // a swap
      {{{"x/A", {a}}, {"x/B", {b}}}, {{"x/A", {a, b}}, {"x/B", {c, d}}}, 3},          // both gain
      {{{"x/A", {a}}, {"x/B", {b}}, {"x/C", {c}}}, {{"x/A", {b}}, {"x/B", {c}}}, 5},  // a chain
  }));
  const std::vector<Offer> order = LosersFirst(ToOffers(now), ToOffers(next));
  CHECK(order.size() == sets);
  Lists seen = now;
  for (const Offer& offer : order) {
    seen[offer.resource].clear();
    for (const OfferedUnit& unit : offer.units) seen[offer.resource].push_back(unit.id);
    std::set<std::string> once;
    for (const auto& [resource, ids] : seen) {
      for (const std::string& id : ids) CHECK(once.insert(id).second);
    }
  }
  std::erase_if(seen, [](const auto& list) { return list.second.empty(); });
  Lists wanted = next;
  std::erase_if(wanted, [](const auto& list) { return list.second.empty(); });
  CHECK(seen == wanted);
}

TEST_CASE("R25: the kubelet has a unit that changes its resource under the new one alone",
          "[deviceplugin][grpc]") {
  const std::string a = "0000:11:00.0", b = "0000:12:00.0";
  TempDir dir;
  FakeKubelet kubelet({.dir = dir.path()});
  REQUIRE(kubelet.Start().ok());
  UnitTree node;
  PluginLoop loop(dir.path(), node.tree());
  loop.plugins().Set(ToOffers({{"nvidia.com/A", {a}}, {"nvidia.com/B", {b}}}));
  REQUIRE(loop.RunUntil([&] { return loop.plugins().AllRegistered(); }));
  loop.plugins().Set(ToOffers({{"nvidia.com/A", {b}}, {"nvidia.com/B", {a}}}));
  CHECK(kubelet.WaitFor(
      [&](const FakeResources& resources) {
        const auto& first = resources.at("nvidia.com/A").devices;
        const auto& second = resources.at("nvidia.com/B").devices;
        return first.size() == 1 && first.contains(b) && second.size() == 1 && second.contains(a);
      },
      absl::Seconds(10)));
}

}  // namespace
}  // namespace vfio_agent
