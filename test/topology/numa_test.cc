#include "sysfs/device/numa.h"

#include <catch2/catch.hpp>

#include "test/support/fake_tree.h"

namespace vfio_agent {
namespace {

TEST_CASE("NUMA nodes are read by number, with the processors that the kernel lists",
          "[topology]") {
  FakeTree tree;
  tree.Write("sys/devices/system/node/node10/cpulist", "8-15\n");
  tree.Write("sys/devices/system/node/node2/cpulist", "0-7,16-23\n");
  tree.Write("sys/devices/system/node/node3/cpulist", "\n");
  tree.Write("sys/devices/system/node/online", "2-3,10\n");
  CHECK(ReadNumaNodes(tree.Open()) == std::vector<NumaNode>{{.number = 2, .cpus = "0-7,16-23"},
                                                            {.number = 3},
                                                            {.number = 10, .cpus = "8-15"}});
}

TEST_CASE("what is no list of processors does not get into a guest's XML", "[topology]") {
  FakeTree tree;
  tree.Write("sys/devices/system/node/node0/cpulist", "0-7'/><evil/>\n");
  tree.Write("sys/devices/system/node/nodeX/cpulist", "0\n");
  CHECK(ReadNumaNodes(tree.Open()) == std::vector<NumaNode>{{.number = 0}});
}

TEST_CASE("a tree without NUMA nodes has none", "[topology]") {
  const FakeTree tree;
  CHECK(ReadNumaNodes(tree.Open()).empty());
}

}  // namespace
}  // namespace vfio_agent
