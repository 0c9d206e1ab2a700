// Registration by being found in the directory of the kubelet's plugin watcher.
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <filesystem>

#include "absl/time/clock.h"
#include "catch2/catch.hpp"
#include "deviceplugin/grpc/listener.h"
#include "test/deviceplugin/support.h"
#include "test/kubelet/fake_kubelet.h"
#include "test/kubelet/fake_registry.h"

namespace vfio_agent {
namespace {

using Kind = PluginEvent::Kind;
using Generation = FakeRegistry::Generation;

constexpr char kGpu[] = "nvidia.com/GA100_A100_PCIE_40GB";
constexpr absl::Duration kLong = absl::Seconds(10);

// One resource with two units, and a watcher that is not started yet.
struct Node {
  explicit Node(FakeRegistry::Options options = {})
      : registry([&] {
          options.dir = dir.path();
          return options;
        }()) {
    const Offer offer = TestOffer(kGpu, {TestUnit("0000:11:00.0"), TestUnit("0000:12:00.0")});
    tree.AddAll(offer);
    loop.plugins().Set({offer});
  }
  bool Serves() {
    return loop.RunUntil([&] {
      return loop.plugins().AllRegistered() && registry.WaitHealthy(kGpu, 2, absl::ZeroDuration());
    });
  }
  std::string Socket() { return loop.plugins().Status()[0].socket; }
  // The socket is withdrawn, the watcher has seen it, and the next one may come.
  bool Withdraws() {
    if (!loop.RunUntil([&] { return Socket().empty(); })) return false;
    if (!registry.WaitForNoSocket(kLong)) return false;
    loop.Forward(absl::Seconds(3));
    return true;
  }

  TempDir kubelet_dir, dir;
  UnitTree tree;
  FakeRegistry registry;
  PluginLoop loop{kubelet_dir.path(), tree.tree(), dir.path()};
};

TEST_CASE("plugins_registry: a socket is found, asked, watched and told", "[deviceplugin][grpc]") {
  Node node({.generation = GENERATE(Generation::k136, Generation::k137),
             .encoded_authority = GENERATE(true, false)});
  node.registry.Start();
  REQUIRE(node.Serves());
  REQUIRE(node.loop.RunUntil([&] { return node.loop.Count(Kind::kRegistered) == 1; }));
  REQUIRE(node.registry.WaitFor(
      [](const RegistryEntries& entries) { return entries.at(kGpu).registrations == 1; }, kLong));
  const RegistryEntry entry = node.registry.Entries().at(kGpu);
  CHECK(entry.info.type() == "DevicePlugin");
  CHECK(entry.info.name() == kGpu);
  CHECK(entry.info.endpoint() == node.Socket());
  REQUIRE(entry.info.supported_versions_size() == 1);
  CHECK(entry.info.supported_versions(0) == "v1beta1");
  // Never both ways, and nothing wakes us up by the clock.
  CHECK(std::filesystem::is_empty(node.kubelet_dir.path()));
  CHECK(node.loop.plugins().NextDeadline() == absl::InfiniteFuture());
}

TEST_CASE("R6: a socket in plugins_registry has a name that the watcher looks at, and that fits",
          "[deviceplugin][grpc]") {
  Node node;
  REQUIRE(node.loop.RunUntil([&] { return !node.Socket().empty(); }));
  const std::string name = std::filesystem::path(node.Socket()).filename();
  CHECK_FALSE(name.starts_with("."));
  CHECK(("/var/lib/kubelet/plugins_registry/" + name).size() <= 107);
}

TEST_CASE("T29: GetInfo is answered within a second, whatever the loop does",
          "[deviceplugin][grpc]") {
  Node node;
  REQUIRE(node.loop.RunUntil([&] { return !node.Socket().empty(); }));
  // From here on nobody steps.
  const auto stub = pluginregistration::Registration::NewStub(
      grpc::CreateChannel("unix:" + node.Socket(), grpc::InsecureChannelCredentials()));
  for (int call = 1; call <= 20; ++call) {
    const absl::Time start = absl::Now();
    grpc::ClientContext context;
    pluginregistration::PluginInfo info;
    REQUIRE(stub->GetInfo(&context, pluginregistration::InfoRequest(), &info).ok());
    CHECK(absl::Now() - start < absl::Seconds(5));
    CHECK(info.name() == kGpu);
  }
}

TEST_CASE("a kubelet that watches a list is up and is not called for that, until the stream ends",
          "[deviceplugin][grpc]") {
  Node node;
  // Whoever calls here finds nobody.
  FakeKubelet killed({.dir = node.kubelet_dir.path()});
  REQUIRE(killed.Start().ok());
  killed.Stop(true);
  node.registry.Start();
  REQUIRE(node.Serves());
  CHECK(node.loop.plugins().kubelet_up());
  CHECK(node.loop.plugins().NextDeadline() == absl::InfiniteFuture());
  node.registry.CancelList(kGpu);
  REQUIRE(node.loop.RunUntil([&] { return node.loop.Count(Kind::kListClosed) == 1; }));
  CHECK_FALSE(node.loop.plugins().kubelet_up());
}

TEST_CASE(
    "T23: a stream that ends is not mended by the kubelet, so the socket goes and another comes",
    "[deviceplugin][grpc]") {
  Node node({.generation = GENERATE(Generation::k136, Generation::k137)});
  node.registry.Start();
  REQUIRE(node.Serves());
  const std::string before = node.Socket();
  node.registry.CancelList(kGpu);
  REQUIRE(node.loop.RunUntil([&] { return node.loop.Count(Kind::kListClosed) == 1; }));
  CHECK_FALSE(node.loop.plugins().AllRegistered());
  CHECK(node.Socket() == before);  // a kubelet that restarts finds it again
  node.loop.Forward(absl::Seconds(4));
  REQUIRE(node.Withdraws());
  REQUIRE(node.Serves());
  CHECK(node.Socket() != before);
  CHECK_FALSE(std::filesystem::exists(before));
  CHECK(node.registry.WaitFor(
      [](const RegistryEntries& entries) { return entries.at(kGpu).registrations == 2; }, kLong));
}

TEST_CASE(
    "R14: a kubelet that restarts finds the sockets that are there by itself, a hundred times",
    "[deviceplugin][grpc]") {
  Node node({.generation = GENERATE(Generation::k136, Generation::k137)});
  node.registry.Start();
  REQUIRE(node.Serves());
  const std::string before = node.Socket();
  for (int restart = 1; restart <= 100; ++restart) {
    CAPTURE(restart);
    node.registry.Stop();
    REQUIRE(node.loop.RunUntil([&] { return node.loop.Count(Kind::kListClosed) == restart; }));
    // A kubelet that starts makes its other socket anew, long before it looks at this directory.
    std::filesystem::remove(node.kubelet_dir.path() + "/kubelet.sock");
    const auto socket = *Listener::Start(node.kubelet_dir.path() + "/kubelet.sock",
                                         {.accepted = [](int fd) { const Fd closed(fd); }});
    node.registry.Start();
    REQUIRE(node.Serves());
    REQUIRE(node.Socket() == before);
  }
  CHECK(node.loop.Count(Kind::kContended) == 0);
}

TEST_CASE("R17: a plugins_registry that is replaced is told, and the new one is used",
          "[deviceplugin][grpc]") {
  Node node;
  node.registry.Start();
  REQUIRE(node.Serves());
  const std::string old = node.dir.path() + ".old";
  std::filesystem::rename(node.dir.path(), old);
  std::filesystem::create_directory(node.dir.path());
  REQUIRE(node.loop.RunUntil([&] { return node.loop.Count(Kind::kDirectoryReplaced) == 1; }));
  REQUIRE(node.registry.WaitForNoSocket(kLong));
  node.loop.Forward(absl::Seconds(3));
  CHECK(node.Serves());
  std::filesystem::remove_all(old);
}

TEST_CASE("R9: a watcher that is not there yet is waited for", "[deviceplugin][grpc]") {
  Node node;
  REQUIRE(node.loop.RunUntil([&] { return !node.Socket().empty(); }));
  node.loop.Forward(absl::Hours(1));
  CHECK_FALSE(node.loop.plugins().AllRegistered());
  node.registry.Start();
  CHECK(node.Serves());
  CHECK(node.loop.Count(Kind::kRegisterFailed) == 0);
}

TEST_CASE("R9: a refusal is reported with the kubelet's words, and the kubelet tries again",
          "[deviceplugin][grpc]") {
  Node node;
  node.registry.Refuse("failed to dial device plugin");
  node.registry.Start();
  REQUIRE(node.loop.RunUntil([&] { return node.loop.Count(Kind::kRegisterFailed) >= 2; }));
  CHECK(node.loop.LastText(Kind::kRegisterFailed) == "failed to dial device plugin");
  CHECK_THAT(node.loop.plugins().Status()[0].last_error, Catch::Contains("failed to dial"));
  const std::string before = node.Socket();
  node.registry.Refuse("");
  REQUIRE(node.Serves());
  CHECK(node.Socket() == before);
  CHECK(node.loop.RunUntil([&] { return node.loop.plugins().Status()[0].last_error.empty(); }));
}

TEST_CASE("R9: a watcher that has given up sees another socket after its longest pause",
          "[deviceplugin][grpc]") {
  Node node({.first_backoff = absl::Hours(1)});
  node.registry.Refuse("failed to dial device plugin");
  node.registry.Start();
  REQUIRE(node.loop.RunUntil([&] { return node.loop.Count(Kind::kRegisterFailed) == 1; }));
  const std::string before = node.Socket();
  node.registry.Refuse("");
  node.loop.Forward(absl::Minutes(4));
  REQUIRE(node.Withdraws());
  REQUIRE(node.Serves());
  CHECK(node.Socket() != before);
}

TEST_CASE("R14: a socket in plugins_registry that is removed under us is replaced",
          "[deviceplugin][grpc]") {
  Node node({.generation = GENERATE(Generation::k136, Generation::k137)});
  node.registry.Start();
  REQUIRE(node.Serves());
  const std::string before = node.Socket();
  REQUIRE(std::filesystem::remove(before));
  REQUIRE(node.registry.WaitForNoSocket(kLong));
  REQUIRE(node.loop.RunUntil([&] { return node.loop.Count(Kind::kListClosed) == 1; }));
  node.loop.Forward(absl::Seconds(3));
  REQUIRE(node.Serves());
  CHECK(node.Socket() != before);
}

TEST_CASE("R22: a shutdown takes the socket out of plugins_registry", "[deviceplugin][grpc]") {
  Node node;
  node.registry.Start();
  REQUIRE(node.Serves());
  node.loop.plugins().Shutdown(absl::Seconds(1));
  CHECK(std::filesystem::is_empty(node.dir.path()));
  CHECK(node.registry.WaitForNoSocket(kLong));
  CHECK(node.registry.WaitHealthy(kGpu, 0, kLong));
}

}  // namespace
}  // namespace vfio_agent
