// Plugins and a kubelet that restarts, again and again.
#include <filesystem>

#include "catch2/catch.hpp"
#include "test/deviceplugin/plugin_node.h"

namespace vfio_agent {
namespace {

using Kind = PluginEvent::Kind;
using Generation = FakeKubelet::Generation;
using Sweep = FakeKubelet::Sweep;

TEST_CASE("R14, R15, R26: a hundred restarts of the kubelet lose no unit", "[deviceplugin][grpc]") {
  PluginNode node({.generation = GENERATE(Generation::k136, Generation::k137)}, 8);
  REQUIRE(node.kubelet.Start().ok());
  REQUIRE(node.Serves());
  for (int restart = 1; restart <= 100; ++restart) {
    CAPTURE(restart);
    node.kubelet.Stop(restart % 3 == 0);  // some are killed
    REQUIRE(node.kubelet.Start().ok());
    REQUIRE(node.Serves());
    REQUIRE(node.Registrations() == 1);
  }
  CHECK(node.loop.Count(Kind::kKubeletRestarted) == 100);
  CHECK(node.loop.Count(Kind::kContended) == 0);
  CHECK(node.kubelet.Allocate(kGpu, {"0000:18:00.0"}).ok());
  // Nothing of all those servers is left but the last one's socket.
  CHECK(std::distance(std::filesystem::directory_iterator(node.dir.path()), {}) == 2);
}

TEST_CASE(
    "R15, T6: a new socket that the kubelet's own sweep takes is replaced by one of another name",
    "[deviceplugin][grpc]") {
  PluginNode node({.generation = GENERATE(Generation::k136, Generation::k137)});
  REQUIRE(node.kubelet.Start().ok());
  REQUIRE(node.Serves());
  std::set<std::string> names = {node.Socket()};
  for (int sweep = 1; sweep <= 3; ++sweep) {
    CAPTURE(sweep);
    std::filesystem::remove(node.Socket());
    REQUIRE(node.loop.RunUntil([&] { return !names.contains(node.Socket()); }));
    names.insert(node.Socket());
  }
  REQUIRE(node.Serves());
  CHECK(names.size() == 4);
}

TEST_CASE("R16, T5: nothing but sockets is put into the kubelet's directory",
          "[deviceplugin][grpc]") {
  PluginNode node({.sweep = Sweep::kAllFiles});
  REQUIRE(node.kubelet.Start().ok());
  REQUIRE(node.Serves());
  int sockets = 0;
  for (const auto& entry : std::filesystem::directory_iterator(node.dir.path())) {
    CHECK(std::filesystem::is_socket(entry.symlink_status()));
    ++sockets;
  }
  CHECK(sockets == 2);
}

}  // namespace
}  // namespace vfio_agent
