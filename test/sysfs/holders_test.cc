#include "sysfs/use/holders.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "test/sysfs/use_tree.h"

namespace vfio_agent {
namespace {

std::string Names(const std::vector<Holder>& holders) {
  std::vector<std::string> names;
  for (const Holder& holder : holders) names.push_back(Spell(holder));
  return absl::StrJoin(names, "; ");
}

struct Processes : UseTree {
  // Who holds the groups 25 and 26; the card is in group 26.
  UseFacts Find() const { return ReadUse(Open(), Facts(), {}, {25, 26}); }
  std::string Holding(const DeviceNode& node) const {
    return Names(FindHolders(Open(), {node}).by_node.at(0));
  }
};

TEST_CASE("who has a group's node open is named with its pid and command", "[sysfs]") {
  Processes processes;
  processes.Process(4711, "qemu-system-x86", {"/dev/null", "/dev/vfio/26"});
  processes.Process(12, "bash", {"/dev/pts/1", "socket:[1234]", "anon_inode:[eventfd]"});
  const UseFacts uses = processes.Find();
  CHECK(uses.groups ==
        std::map<int, std::vector<Holder>>{
            {26, {{.pid = 4711, .command = "qemu-system-x86", .node = "/dev/vfio/26"}}}});
  CHECK(uses.processes_known);
}

TEST_CASE("a process that has a node open twice is one holder", "[sysfs]") {
  Processes processes;
  processes.Process(7, "a", {"/dev/vfio/26", "/dev/vfio/26"}).Process(8, "b", {"/dev/vfio/26"});
  CHECK(Names(processes.Find().groups.at(26)) == "pid 7 (a); pid 8 (b)");
}

TEST_CASE("a device node counts for the group of its device", "[sysfs]") {
  Processes processes;
  processes.Below(kCard, "vfio-dev/vfio3/dev", "242:3");
  processes.Process(7, "a", {"/dev/vfio/devices/vfio3", "/dev/vfio/devices/vfio9"});
  processes.Process(8, "b", {"/dev/vfio/devices/vfio9"});
  const UseFacts uses = processes.Find();
  REQUIRE(uses.groups.size() == 1);
  CHECK(Names(uses.groups.at(26)) == "pid 7 (a)");
}

TEST_CASE("a process with a group's node and a device node is one holder", "[sysfs]") {
  Processes processes;
  processes.Below(kCard, "vfio-dev/vfio3/dev", "242:3");
  processes.Process(7, "a", {"/dev/vfio/devices/vfio3", "/dev/vfio/26"});
  CHECK(Names(processes.Find().groups.at(26)) == "pid 7 (a)");
}

TEST_CASE("a group of noiommu mode is held by its own node", "[sysfs]") {
  Processes processes;
  processes.Process(7, "dpdk", {"/dev/vfio/noiommu-26"});
  CHECK(Names(processes.Find().groups.at(26)) == "pid 7 (dpdk)");
}

TEST_CASE("the container node and other names are nobody's group", "[sysfs]") {
  Processes processes;
  processes.Process(7, "a",
                    {"/dev/vfio/vfio", "/dev/vfio/26x", "/dev/vfio/126", "/dev/xvfio/26",
                     "/home/vfio/26", "dev/vfio/26"});
  CHECK(processes.Find().groups.empty());
}

TEST_CASE("a node is known below another dev, and when its name was removed", "[sysfs]") {
  const DeviceNode node{.name = "nvidia0", .number = ::makedev(195, 0)};
  Processes processes;
  processes.Process(37526, "nvidia-persiste", {"/run/nvidia/driver/dev/nvidia0"});
  processes.Process(8, "b", {"/dev/nvidia0 (deleted)"}).Process(9, "c", {"/dev/nvidia01"});
  CHECK(processes.Holding(node) == "pid 37526 (nvidia-persiste); pid 8 (b)");
  CHECK(FindHolders(processes.Open(), {node}).by_node[0][1].node == "/dev/nvidia0");
}

TEST_CASE("the number of a node that is there decides, not its name", "[sysfs]") {
  Processes processes;
  std::filesystem::create_directories(processes.root() / "dev");
  const std::string renamed = (processes.root() / "dev/renamed").string();
  if (::mknod(renamed.c_str(), S_IFCHR | 0600, ::makedev(195, 7)) != 0) {
    WARN("skipped: no privilege to make device nodes");
    return;
  }
  processes.Process(7, "a", {"/dev/renamed"});
  CHECK(processes.Holding({.name = "nvidia7", .number = ::makedev(195, 7)}) == "pid 7 (a)");
  CHECK(processes.Holding({.name = "renamed", .number = ::makedev(195, 8)}).empty());
  // A block device may have the same number.
  CHECK(processes.Holding({.name = "x", .block = true, .number = ::makedev(195, 7)}).empty());
}

// The one test that looks at the machine itself: at this process, which is always there.
TEST_CASE("on the host a node is known by its number under any name", "[sysfs]") {
  const Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  REQUIRE(null.valid());
  const Tree host = *Tree::Open("/");
  const auto mine = [&host](const DeviceNode& node) {
    const NodeHolders found = FindHolders(host, {node});
    return std::ranges::count(found.by_node.at(0), ::getpid(), &Holder::pid);
  };
  CHECK(mine({.name = "another-name", .number = ::makedev(1, 3)}) == 1);
  CHECK(mine({.name = "null", .number = ::makedev(1, 33)}) == 0);
  CHECK(mine({.name = "null", .block = true, .number = ::makedev(1, 3)}) == 0);
  CHECK(mine({.name = "null"}) == 1);
}

TEST_CASE("a holder's pod is told by its control group", "[sysfs]") {
  Processes processes;
  processes.Process(7, "dcgm-exporter", {"/dev/vfio/26"});
  processes.Cgroup(
      7, "0::/kubepods/pod1b2c3d4e-0000-4000-8000-0123456789ab/" + std::string(64, 'a') + "\n");
  CHECK(Names(processes.Find().groups.at(26)) ==
        "pid 7 (dcgm-exporter, pod 1b2c3d4e-0000-4000-8000-0123456789ab, container aaaaaaaaaaaa)");
}

TEST_CASE("a process whose name cannot be read is still a holder", "[sysfs]") {
  Processes processes;
  processes.Process(7, "", {"/dev/vfio/26"}).Remove("proc/7/comm");
  CHECK(Names(processes.Find().groups.at(26)) == "pid 7 (unknown)");
}

TEST_CASE("a process cannot break a message by its name", "[sysfs]") {
  Processes processes;
  processes.Process(7, "a\nlevel=error", {"/dev/vfio/26"});
  CHECK(Names(processes.Find().groups.at(26)) == "pid 7 (a?level=error)");
}

TEST_CASE("a process that ends meanwhile spoils nothing", "[sysfs]") {
  Processes processes;
  processes.Write("proc/6/comm", "gone\n").Write("proc/cmdline", "quiet\n");
  processes.Process(7, "a", {"/dev/vfio/26"});
  const UseFacts uses = processes.Find();
  CHECK(uses.groups.size() == 1);
  CHECK(uses.processes_known);
}

TEST_CASE("descriptors that cannot be listed leave nobody not known", "[sysfs]") {
  Processes processes;
  processes.Write("proc/7/fd", "not a directory");
  CHECK_FALSE(processes.Find().processes_known);
}

TEST_CASE("without a list of processes nobody is not known", "[sysfs]") {
  CHECK_FALSE(FindHolders(FakeTree().Open(), {}).complete);
}

TEST_CASE("a holder that cannot be seen has no pid in a message", "[sysfs]") {
  CHECK(Spell({.command = "a process that cannot be seen"}) == "a process that cannot be seen");
}

TEST_CASE("a device number is two numbers and nothing else", "[sysfs]") {
  CHECK(ParseDeviceNumber("259:2") == ::makedev(259, 2));
  for (const char* bad :
       {"", ":", "259", "259:", ":2", "259:2:1", "-1:2", "259:4294967296", "a:b"}) {
    CAPTURE(bad);
    CHECK_FALSE(ParseDeviceNumber(bad));
  }
}

TEST_CASE("a group whose node can be opened, or is not there, is not open", "[sysfs]") {
  FakeTree fake;
  fake.Node("26");
  CHECK(IsGroupOpen(fake.Open(), 26) == false);
  CHECK(IsGroupOpen(fake.Open(), 27) == false);
}

TEST_CASE("a group whose node cannot be opened for another reason may be open", "[sysfs]") {
  FakeTree fake;
  fake.Write("dev/vfio/26/x", "");  // EISDIR
  CHECK_FALSE(IsGroupOpen(fake.Open(), 26).has_value());
}

TEST_CASE("without nodes of groups a group is open where a process has a member's own", "[sysfs]") {
  Processes processes;
  processes.Below(kCard, "vfio-dev/vfio3/dev", "242:3");
  processes.Process(7, "a", {"/dev/vfio/devices/vfio3"});
  CHECK(IsGroupOpen(processes.Open(), 26) == false);  // such a kernel makes no cdevs
  processes.Node("devices/vfio3");
  CHECK(IsGroupOpen(processes.Open(), 26) == true);
  processes.Remove("proc/7");
  CHECK(IsGroupOpen(processes.Open(), 26) == false);
  processes.Process(7, "a", {"/dev/vfio/devices/vfio3"}).Node("26");
  CHECK(IsGroupOpen(processes.Open(), 26) == false);  // the kernel's word on the group
}

TEST_CASE("a mediated device's own node counts for its group", "[sysfs]") {
  constexpr char kUuid[] = "83b8f4f2-509f-382f-3c1e-e6bfe0fa1001";
  Processes processes;
  const std::string dir = processes.Real(kCard) + "/" + kUuid;
  processes.Below(kCard, std::string(kUuid) + "/vfio-dev/vfio4/dev", "242:4");
  processes.Link(std::string("sys/bus/mdev/devices/") + kUuid, dir);
  processes.Link(dir + "/iommu_group", "sys/kernel/iommu_groups/25");
  processes.Link(std::string("sys/kernel/iommu_groups/25/devices/") + kUuid, dir);
  processes.Process(7, "a", {"/dev/vfio/devices/vfio4"}).Node("devices/vfio4");
  CHECK(processes.Facts().mdev.instances.at(0).cdev == "vfio4");
  CHECK(Names(processes.Find().groups.at(25)) == "pid 7 (a)");
  CHECK(IsGroupOpen(processes.Open(), 25) == true);
}

}  // namespace
}  // namespace vfio_agent
