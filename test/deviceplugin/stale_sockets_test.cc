// What is removed from the kubelet's directory at start, and what is left alone.
#include "deviceplugin/kubelet/stale_sockets.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "catch2/catch.hpp"
#include "deviceplugin/kubelet/server.h"
#include "test/deviceplugin/support.h"
#include "test/kubelet/fake_kubelet.h"

namespace vfio_agent {
namespace {

namespace fs = std::filesystem;

// A socket's file; whoever holds the descriptor listens on it.
Fd MakeSocket(const std::string& path, int type = SOCK_STREAM) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  REQUIRE(path.size() < sizeof(address.sun_path));
  std::ranges::copy(path, address.sun_path);
  Fd fd(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  REQUIRE(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
  if (type == SOCK_STREAM) REQUIRE(::listen(fd.get(), 0) == 0);
  return fd;
}

void MakeDeadSocket(const std::string& path) { const Fd closed = MakeSocket(path); }

TEST_CASE("R7: the socket of an agent that was killed is removed", "[deviceplugin]") {
  TempDir dir;
  std::string name = SocketName("nvidia.com/X", 0xdeadbeef, 12);
  const bool killed_before_it_listened = GENERATE(false, true);
  if (killed_before_it_listened) name[0] = '.';
  const std::string dead = dir.path() + "/" + name;
  MakeDeadSocket(dead);
  const StaleSockets stale = RemoveStaleSockets(dir.path());
  CHECK(stale.removed == std::vector<std::string>{dead});
  CHECK(stale.kept.empty());
  CHECK(fs::is_empty(dir.path()));
  CHECK(RemoveStaleSockets(dir.path()).removed.empty());
}

TEST_CASE("R7: nothing else is removed", "[deviceplugin]") {
  TempDir dir;
  const std::string ours = dir.path() + "/vfio-01234567-89abcdef-1.sock";
  SECTION("a socket of ours that somebody listens on") {
    const Fd alive = MakeSocket(ours);
    CHECK(RemoveStaleSockets(dir.path()).removed.empty());
    CHECK(fs::exists(ours));
  }
  SECTION("one under its hidden name that somebody listens on") {
    const std::string hidden = dir.path() + "/.fio-01234567-89abcdef-1.sock";
    const Fd alive = MakeSocket(hidden);
    CHECK(RemoveStaleSockets(dir.path()).removed.empty());
    CHECK(fs::exists(hidden));
  }
  SECTION("one whose queue is full") {
    const Fd alive = MakeSocket(ours);
    std::vector<Fd> waiting;
    for (int i = 0; i < 4; ++i) {
      waiting.emplace_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
      std::ranges::copy(ours, address.sun_path);
      ::connect(waiting.back().get(), reinterpret_cast<sockaddr*>(&address), sizeof(address));
    }
    CHECK(RemoveStaleSockets(dir.path()).removed.empty());
    CHECK(fs::exists(ours));
  }
  SECTION("one of another kind") {
    const Fd other = MakeSocket(ours, SOCK_DGRAM);
    CHECK(RemoveStaleSockets(dir.path()).removed.empty());
    CHECK(fs::exists(ours));
  }
  SECTION("a file, a directory or a link of such a name") {
    std::ofstream(ours) << "no socket";
    fs::create_directory(dir.path() + "/vfio-01234567-89abcdef-2.sock");
    MakeDeadSocket(dir.path() + "/dead");
    fs::create_symlink("dead", dir.path() + "/vfio-01234567-89abcdef-3.sock");
    CHECK(RemoveStaleSockets(dir.path()).removed.empty());
    CHECK(std::distance(fs::directory_iterator(dir.path()), {}) == 4);
  }
  SECTION("other names") {
    const std::vector<std::string> names = {
        "kubelet.sock",
        "kubevirt-nvidia.com-X.sock",
        "vfio-01234567-89abcdef-.sock",
        "vfio-01234567-89abcdef-1x.sock",
        "vfio-01234567-89ABCDEF-1.sock",
        "vfio-0123456-789abcdef-1.sock",
        "vfio-01234567-89abcdef-1.sock.old",
        "xvfio-01234567-89abcdef-1.sock",
        ".vfio-01234567-89abcdef-1.sock",
        "fio-01234567-89abcdef-1.sock",
        ".fio-01234567-89abcdef.sock",
        "vfio-01234567-89abcdef.sock",
        "vfio-.sock",
    };
    for (const std::string& name : names) MakeDeadSocket(dir.path() + "/" + name);
    CHECK(RemoveStaleSockets(dir.path()).removed.empty());
    CHECK(std::distance(fs::directory_iterator(dir.path()), {}) ==
          static_cast<std::ptrdiff_t>(names.size()));
  }
}

TEST_CASE("a directory that is not there has no stale sockets", "[deviceplugin]") {
  TempDir dir;
  const StaleSockets stale = RemoveStaleSockets(dir.path() + "/not-there");
  CHECK(stale.removed.empty());
  CHECK(stale.kept.empty());
}

TEST_CASE("R56: of the sockets in the directory only living ones of others are named",
          "[deviceplugin]") {
  TempDir dir;
  const Fd kubelet = MakeSocket(dir.path() + "/kubelet.sock");
  const Fd ours = MakeSocket(dir.path() + "/vfio-01234567-89abcdef-1.sock");
  const Fd other = MakeSocket(dir.path() + "/rdma.sock");
  const Fd kubevirt = MakeSocket(dir.path() + "/" + KubeVirtSocketName("nvidia.com/GA100_X"));
  MakeDeadSocket(dir.path() + "/dead.sock");
  std::ofstream(dir.path() + "/kubelet_internal_checkpoint") << "{}";
  CHECK(OtherPlugins(dir.path()) ==
        std::vector<std::string>{"kubevirt-nvidia.com-GA100_X.sock", "rdma.sock"});
}

TEST_CASE("R7: plugins start with a tidy directory, and say what they removed",
          "[deviceplugin][grpc]") {
  TempDir dir, registry;
  const std::string called = dir.path() + "/vfio-01234567-89abcdef-7.sock";
  const std::string found = registry.path() + "/vfio-01234567-89abcdef-8.sock";
  MakeDeadSocket(called);
  MakeDeadSocket(found);
  UnitTree node;
  PluginLoop loop(dir.path(), node.tree(), registry.path());
  CHECK(fs::is_empty(dir.path()));
  CHECK(fs::is_empty(registry.path()));
  REQUIRE(loop.RunUntil([&] { return loop.Count(PluginEvent::Kind::kStaleSockets) == 2; }));
  CHECK_THAT(loop.events().front().text, Catch::Contains("removed " + called));
  CHECK_THAT(loop.LastText(PluginEvent::Kind::kStaleSockets), Catch::Contains(found));
}

}  // namespace
}  // namespace vfio_agent
