#include "sysfs/holders.h"

#include <sys/types.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "test/support/facts.h"
#include "test/support/fake_tree.h"

namespace vfio_agent {
namespace {

struct Processes : FakeTree {
  // Descriptor `fd` of process `pid` is open on `target`, as proc shows it.
  Processes& Open(int pid, int fd, const std::string& target) {
    const std::string dir = "proc/" + std::to_string(pid);
    Write(dir + "/fd/.keep", "");
    std::filesystem::create_symlink(target, root() / dir / "fd" / std::to_string(fd));
    return *this;
  }
  Processes& Named(int pid, const std::string& command) {
    Write("proc/" + std::to_string(pid) + "/comm", command + "\n");
    return *this;
  }
  VfioHolders Find(const NodeFacts& facts = {}) const {
    return FindVfioHolders(FakeTree::Open(), facts);
  }
};

TEST_CASE("who has a group's node open is named with its pid and command", "[sysfs]") {
  Processes processes;
  processes.Named(4711, "qemu-system-x86").Open(4711, 31, "/dev/vfio/26");
  processes.Named(12, "bash").Open(12, 0, "/dev/pts/1").Open(12, 3, "socket:[1234]");
  const VfioHolders holders = processes.Find();
  CHECK(holders.by_group ==
        std::map<int, std::vector<Holder>>{{26, {{.pid = 4711, .command = "qemu-system-x86"}}}});
  CHECK(holders.complete);
}

TEST_CASE("a process that has a node open twice is one holder", "[sysfs]") {
  Processes processes;
  processes.Named(7, "a").Open(7, 3, "/dev/vfio/26").Open(7, 4, "/dev/vfio/26");
  processes.Named(8, "b").Open(8, 3, "/dev/vfio/26").Open(8, 4, "/dev/vfio/27");
  const VfioHolders holders = processes.Find();
  CHECK(holders.by_group.at(26).size() == 2);
  CHECK(holders.by_group.at(27) == std::vector<Holder>{{.pid = 8, .command = "b"}});
}

TEST_CASE("a device node counts for the group of its device", "[sysfs]") {
  Processes processes;
  processes.Named(7, "a").Open(7, 3, "/dev/vfio/devices/vfio3");
  processes.Open(7, 4, "/dev/vfio/devices/vfio9");
  NodeFacts facts = Node({Gpu("0000:3b:00.0", 17, "vfio-pci"), Gpu("0000:5e:00.0", 18)});
  Find(facts, "0000:3b:00.0").vfio_cdev = "vfio3";
  CHECK(processes.Find(facts).by_group ==
        std::map<int, std::vector<Holder>>{{17, {{.pid = 7, .command = "a"}}}});
}

TEST_CASE("the container node and other names are nobody's group", "[sysfs]") {
  Processes processes;
  processes.Named(7, "a").Open(7, 3, "/dev/vfio/vfio").Open(7, 4, "/dev/vfio/26x");
  processes.Open(7, 5, "/srv/dev/vfio/26").Write("proc/cmdline", "quiet\n");
  CHECK(processes.Find().by_group.empty());
}

TEST_CASE("a process whose name cannot be read is still a holder", "[sysfs]") {
  Processes processes;
  processes.Open(7, 3, "/dev/vfio/26");
  CHECK(processes.Find().by_group.at(26) == std::vector<Holder>{{.pid = 7, .command = "unknown"}});
}

TEST_CASE("a process that ends meanwhile spoils nothing", "[sysfs]") {
  Processes processes;
  processes.Named(6, "gone").Named(7, "a").Open(7, 3, "/dev/vfio/26");
  const VfioHolders holders = processes.Find();
  CHECK(holders.by_group.size() == 1);
  CHECK(holders.complete);
}

TEST_CASE("a group whose node can be opened, or is not there, is not open", "[sysfs]") {
  FakeTree fake;
  fake.Node("26");
  CHECK_FALSE(IsGroupOpen(fake.Open(), 26));
  CHECK_FALSE(IsGroupOpen(fake.Open(), 27));
}

TEST_CASE("without a list of processes nobody is not known", "[sysfs]") {
  CHECK_FALSE(FindVfioHolders(FakeTree().Open(), {}).complete);
}

}  // namespace
}  // namespace vfio_agent
