#include "sysfs/node_watch.h"

#include <poll.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "sysfs/tree.h"
#include "test/support/fake_tree.h"

namespace vfio_agent {
namespace {

namespace fs = std::filesystem;

struct Watched {
  FakeTree fake;
  Tree tree = fake.Open();
  const fs::path dev = fake.root() / "dev";

  // Inotify queues within the call that makes the change: nothing to wait for.
  static bool Woken(NodeWatch& watch) {
    pollfd ready = {.fd = watch.fd(), .events = POLLIN};
    return ::poll(&ready, 1, 0) == 1 && watch.Drain();
  }
  void Touch(const std::string& name) const { std::ofstream(dev / name) << ""; }
};

TEST_CASE("R30: a group's node that goes, comes back, or is replaced wakes each time", "[sysfs]") {
  Watched node;
  fs::create_directories(node.dev / "vfio/devices");
  node.Touch("vfio/26");
  NodeWatch watch(node.tree);
  CHECK_FALSE(Watched::Woken(watch));
  fs::remove(node.dev / "vfio/26");
  CHECK(Watched::Woken(watch));
  node.Touch("vfio/26");
  CHECK(Watched::Woken(watch));
  node.Touch("vfio/new");
  Watched::Woken(watch);
  fs::rename(node.dev / "vfio/new", node.dev / "vfio/26");
  CHECK(Watched::Woken(watch));
  node.Touch("vfio/devices/vfio0");
  CHECK(Watched::Woken(watch));
}

TEST_CASE("the directories are watched from the moment they are made, and after they are made anew",
          "[sysfs]") {
  Watched node;
  fs::remove_all(node.dev / "vfio");
  NodeWatch watch(node.tree);
  node.Touch("ttyS9");
  CHECK_FALSE(Watched::Woken(watch));  // not ours
  for (int round = 0; round < 3; ++round) {
    fs::create_directory(node.dev / "vfio");
    CHECK(Watched::Woken(watch));
    node.Touch("vfio/7");
    CHECK(Watched::Woken(watch));
    fs::create_directory(node.dev / "vfio/devices");
    CHECK(Watched::Woken(watch));
    node.Touch("vfio/devices/vfio0");
    CHECK(Watched::Woken(watch));
    fs::remove_all(node.dev / "vfio");
    CHECK(Watched::Woken(watch));
  }
}

TEST_CASE("R30: directories that are replaced while events are lost are watched afterwards",
          "[sysfs]") {
  Watched node;
  fs::create_directories(node.dev / "vfio/devices");
  NodeWatch watch(node.tree);
  int queue = 0;
  std::ifstream("/proc/sys/fs/inotify/max_queued_events") >> queue;
  REQUIRE(queue > 0);
  for (int i = 0; i <= queue / 2; ++i) {
    node.Touch("vfio/26");
    fs::remove(node.dev / "vfio/26");
  }
  fs::remove_all(node.dev / "vfio");
  fs::create_directories(node.dev / "vfio/devices");
  CHECK(Watched::Woken(watch));
  while (Watched::Woken(watch)) {  // by the end of the old watches
  }
  node.Touch("vfio/26");
  CHECK(Watched::Woken(watch));
  node.Touch("vfio/devices/vfio0");
  CHECK(Watched::Woken(watch));
}

TEST_CASE("no link out of the root is followed to be watched", "[sysfs]") {
  Watched node;
  const fs::path outside = node.fake.root().string() + "-outside";
  fs::create_directories(outside);
  fs::remove_all(node.dev / "vfio");
  fs::create_directory_symlink(outside, node.dev / "vfio");
  NodeWatch watch(node.tree);
  std::ofstream(outside / "26") << "";
  CHECK_FALSE(Watched::Woken(watch));
  fs::remove_all(outside);
}

}  // namespace
}  // namespace vfio_agent
