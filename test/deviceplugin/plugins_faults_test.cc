// Plugins against the fake kubelet: restarts and everything else that ends a registration.
#include <unistd.h>

#include <filesystem>

#include "absl/time/clock.h"
#include "catch2/catch.hpp"
#include "test/deviceplugin/plugin_node.h"

namespace vfio_agent {
namespace {

using Kind = PluginEvent::Kind;
using Generation = FakeKubelet::Generation;
using Sweep = FakeKubelet::Sweep;

using Node = PluginNode;

TEST_CASE(
    "R7, R14, R15, T5: after each restart of the kubelet the resource is back on a new socket",
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

TEST_CASE("a kubelet that was killed is down although its socket is there, and up when it is back",
          "[deviceplugin][grpc]") {
  Node node({}, GENERATE(1, 0));  // with no unit there is no stream whose end would tell
  const auto up = [&] { return node.loop.plugins().kubelet_up(); };
  REQUIRE(node.loop.RunUntil([&] { return true; }));
  CHECK_FALSE(up());
  REQUIRE(node.kubelet.Start().ok());
  REQUIRE(node.loop.RunUntil(up));
  if (node.count > 0) REQUIRE(node.Serves());
  node.kubelet.Stop(true);
  REQUIRE(std::filesystem::exists(node.dir.path() + "/kubelet.sock"));
  CHECK(node.loop.RunUntil([&] { return !up(); }));
  CHECK(node.loop.plugins().NextDeadline() < absl::InfiniteFuture());
  REQUIRE(node.kubelet.Start().ok());
  CHECK(node.loop.RunUntil(up));
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

TEST_CASE("R11, T2: a kubelet that says yes but never watches is asked again from a new socket",
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

TEST_CASE(
    "R12, T3: a stream that the kubelet drops, which it never opens again, leads to a new "
    "registration",
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

TEST_CASE(
    "R14, T1: a socket that is removed under us is replaced by another one, whose stream outlives "
    "the old",
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
