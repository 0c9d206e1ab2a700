// Plugins against the fake kubelet: restarts and everything else that ends a registration.
#include <unistd.h>

#include <filesystem>

#include "absl/time/clock.h"
#include "catch2/catch.hpp"
#include "deviceplugin/plugins.h"
#include "test/deviceplugin/support.h"
#include "test/kubelet/fake_kubelet.h"

namespace vfio_agent {
namespace {

using Kind = PluginEvent::Kind;
using Generation = FakeKubelet::Generation;
using Sweep = FakeKubelet::Sweep;

constexpr char kGpu[] = "nvidia.com/GA100_A100_PCIE_40GB";

// One resource with one unit, and a kubelet that is not started yet.
struct Node {
  explicit Node(FakeKubelet::Options options = {})
      : kubelet([&] {
          options.dir = dir.path();
          return options;
        }()) {
    const Offer offer = TestOffer(kGpu, {TestUnit("0000:11:00.0", 0)});
    tree.AddAll(offer);
    loop.plugins().Set({offer});
  }

  bool Serves() {
    return loop.RunUntil([&] {
      return loop.plugins().AllRegistered() && kubelet.WaitHealthy(kGpu, 1, absl::ZeroDuration());
    });
  }
  // The kubelet drops the newest stream, for the n-th time. Both sides have noticed on return: up
  // to 1.36 a kubelet that is late takes the next plugin down.
  bool Loses(int n) {
    kubelet.CancelList(kGpu);
    return loop.RunUntil(
        [&] { return loop.Count(Kind::kListClosed) == n && kubelet.Resources().at(kGpu).stopped; });
  }
  std::string Socket() { return loop.plugins().Status()[0].socket; }
  int Registrations() { return kubelet.Resources().at(kGpu).registrations; }

  TempDir dir;
  UnitTree tree;
  FakeKubelet kubelet;
  PluginLoop loop{dir.path(), tree.tree()};
};

TEST_CASE("R14, R15: after each restart of the kubelet the resource is back on a new socket",
          "[deviceplugin][grpc]") {
  Node node({.generation = GENERATE(Generation::k136, Generation::k137),
             .sweep = GENERATE(Sweep::kSockets, Sweep::kAllFiles)});
  REQUIRE(node.kubelet.Start().ok());
  REQUIRE(node.Serves());
  for (int restart = 1; restart <= 3; ++restart) {
    CAPTURE(restart);
    const std::string before = node.Socket();
    node.kubelet.Stop();
    REQUIRE(node.kubelet.Start().ok());
    REQUIRE(node.Serves());
    CHECK(node.Socket() != before);
    CHECK_FALSE(std::filesystem::exists(before));
    CHECK(node.kubelet.Allocate(kGpu, {"0000:11:00.0"}).ok());
  }
  CHECK(node.loop.Count(Kind::kKubeletRestarted) == 3);
}

TEST_CASE("R14: a kubelet that was killed and left its socket behind is waited for",
          "[deviceplugin][grpc]") {
  Node node;
  REQUIRE(node.kubelet.Start().ok());
  REQUIRE(node.Serves());
  node.kubelet.Stop(true);
  REQUIRE(node.loop.RunUntil([&] { return !node.loop.plugins().AllRegistered(); }));
  node.loop.Forward(absl::Seconds(10));  // past the pause after a lost stream
  REQUIRE(node.loop.RunUntil([&] { return node.loop.Count(Kind::kRegisterFailed) > 0; }));
  REQUIRE(node.kubelet.Start().ok());
  CHECK(node.Serves());
}

TEST_CASE("R9: a kubelet that is not there yet is waited for", "[deviceplugin][grpc]") {
  Node node;
  REQUIRE(node.loop.RunUntil([&] { return !node.Socket().empty(); }));
  CHECK_FALSE(node.loop.plugins().AllRegistered());
  CHECK(node.loop.plugins().NextDeadline() <= absl::Now() + absl::Seconds(5));
  CHECK(node.loop.Count(Kind::kRegisterFailed) == 0);
  REQUIRE(node.kubelet.Start().ok());
  CHECK(node.Serves());
  CHECK(node.loop.Count(Kind::kKubeletRestarted) == 0);
}

TEST_CASE("R9: a directory that is not there yet is waited for", "[deviceplugin][grpc]") {
  TempDir dir;
  const std::string late = dir.path() + "/device-plugins";
  UnitTree tree;
  FakeKubelet kubelet({.dir = late});
  PluginLoop loop(late, tree.tree());
  loop.plugins().Set({TestOffer(kGpu, {TestUnit("0000:11:00.0")})});
  REQUIRE(loop.RunUntil([&] { return loop.Count(Kind::kRegisterFailed) == 1; }));
  CHECK_THAT(loop.LastText(Kind::kRegisterFailed), Catch::Contains("No such file"));
  std::filesystem::create_directory(late);
  REQUIRE(kubelet.Start().ok());
  loop.Forward(absl::Seconds(5));
  CHECK(loop.RunUntil([&] { return loop.plugins().AllRegistered(); }));
  CHECK(loop.Count(Kind::kDirectoryReplaced) == 0);
}

TEST_CASE("R11: a kubelet that says yes but never watches is asked again from a new socket",
          "[deviceplugin][grpc]") {
  Node node({.generation = GENERATE(Generation::k136, Generation::k137)});
  REQUIRE(node.kubelet.Start().ok());
  node.kubelet.IgnoreLists(true);
  REQUIRE(node.loop.RunUntil([&] { return node.loop.Count(Kind::kRegistered) == 1; }));
  CHECK_FALSE(node.loop.plugins().AllRegistered());
  const std::string before = node.Socket();
  node.kubelet.IgnoreLists(false);
  node.loop.Forward(absl::Seconds(11));
  REQUIRE(node.Serves());
  CHECK(node.Socket() != before);
  CHECK(node.Registrations() == 2);
  CHECK_THAT(node.loop.LastText(Kind::kRegisterFailed), Catch::Contains("does not watch"));
}

TEST_CASE("R12: a stream that the kubelet drops leads to a new registration",
          "[deviceplugin][grpc]") {
  Node node({.generation = GENERATE(Generation::k136, Generation::k137)});
  REQUIRE(node.kubelet.Start().ok());
  REQUIRE(node.Serves());
  const std::string before = node.Socket();
  REQUIRE(node.Loses(1));
  CHECK_FALSE(node.loop.plugins().AllRegistered());
  node.loop.Forward(absl::Seconds(4));
  REQUIRE(node.Serves());
  CHECK(node.Socket() != before);
  CHECK(node.Registrations() == 2);
}

TEST_CASE("R56: a stream that is lost again and again is reported as contention",
          "[deviceplugin][grpc]") {
  Node node;
  REQUIRE(node.kubelet.Start().ok());
  for (int loss = 1; loss <= 3; ++loss) {
    REQUIRE(node.Serves());
    REQUIRE(node.Loses(loss));
    if (loss < 3) node.loop.Forward(absl::Seconds(4));
  }
  CHECK_THAT(node.loop.LastText(Kind::kListClosed), Catch::Contains("another plugin"));
  CHECK(node.loop.plugins().NextDeadline() > absl::Now() + absl::Seconds(20));
}

TEST_CASE("R14: a socket that is removed under us is replaced by another one",
          "[deviceplugin][grpc]") {
  Node node({.generation = GENERATE(Generation::k136, Generation::k137)});
  REQUIRE(node.kubelet.Start().ok());
  REQUIRE(node.Serves());
  const std::string before = node.Socket();
  REQUIRE(::unlink(before.c_str()) == 0);
  REQUIRE(node.loop.RunUntil([&] { return node.Socket() != before; }));
  REQUIRE(node.Serves());
  CHECK(node.Registrations() == 2);
  CHECK(node.loop.Count(Kind::kKubeletRestarted) == 0);
}

TEST_CASE("R17: a replaced directory is told, and the new one is used", "[deviceplugin][grpc]") {
  Node node;
  REQUIRE(node.kubelet.Start().ok());
  REQUIRE(node.Serves());
  const std::string old = node.dir.path() + ".old";
  std::filesystem::rename(node.dir.path(), old);
  std::filesystem::create_directory(node.dir.path());
  REQUIRE(node.loop.RunUntil([&] { return node.loop.Count(Kind::kDirectoryReplaced) == 1; }));
  node.kubelet.Stop();
  REQUIRE(node.kubelet.Start().ok());
  CHECK(node.Serves());
  CHECK(node.loop.Count(Kind::kDirectoryReplaced) == 1);
  std::filesystem::remove_all(old);
}

TEST_CASE("R9: a name that the kubelet will never take is reported and asked for again, slowly",
          "[deviceplugin][grpc]") {
  TempDir dir;
  UnitTree tree;
  FakeKubelet kubelet({.dir = dir.path()});
  REQUIRE(kubelet.Start().ok());
  PluginLoop loop(dir.path(), tree.tree());
  loop.plugins().Set({TestOffer("NVIDIA.com/X", {TestUnit("0000:11:00.0")})});
  REQUIRE(loop.RunUntil([&] { return loop.Count(Kind::kRegisterFailed) == 1; }));
  CHECK_THAT(loop.LastText(Kind::kRegisterFailed), Catch::Contains("is invalid"));
  CHECK(loop.plugins().NextDeadline() > absl::Now() + absl::Seconds(50));
}

TEST_CASE("R9: a kubelet that refuses for a while gets its second call", "[deviceplugin][grpc]") {
  Node node;
  REQUIRE(node.kubelet.Start().ok());
  node.kubelet.RefuseRegister("failed to dial device plugin: context deadline exceeded");
  REQUIRE(node.loop.RunUntil([&] { return node.loop.Count(Kind::kRegisterFailed) == 1; }));
  CHECK_THAT(node.loop.LastText(Kind::kRegisterFailed), Catch::Contains("failed to dial"));
  node.kubelet.RefuseRegister("");
  node.loop.Forward(absl::Seconds(2));
  CHECK(node.Serves());
}

}  // namespace
}  // namespace vfio_agent
