// Dropping capabilities, by the kernel's own word; what without them cannot be seen.
#include "agent/privileges/rights.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>

#include "agent/work/child.h"
#include "agent/work/job.h"
#include "sysfs/fd.h"
#include "sysfs/tree.h"
#include "sysfs/use/holders.h"
#include "test/agent/program.h"
#include "test/privileges/process_rights.h"

namespace vfio_agent {
namespace {

constexpr Rights kSome = RightSet({CAP_SYS_PTRACE, CAP_SYS_ADMIN});
constexpr Rights kOne = RightSet({CAP_SYS_ADMIN});

bool IsRoot() {
  if (::geteuid() == 0 && (PermittedRights() & kAgentRights) == kAgentRights) {
    return true;
  }
  WARN("skipped: only root has something to drop");
  return false;
}

// A process of another user that has /dev/full open, which hardly anybody else has.
class Stranger {
 public:
  Stranger() {
    int ready[2] = {-1, -1};
    REQUIRE(::pipe(ready) == 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
      const int full = ::open("/dev/full", O_RDONLY);
      const bool well = full >= 0 && ::setresgid(65534, 65534, 65534) == 0 &&
                        ::setresuid(65534, 65534, 65534) == 0 &&
                        // As a program that this user started.
                        ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0;
      if (well) [[maybe_unused]]
        const ssize_t n = ::write(ready[1], "x", 1);
      ::close(ready[1]);
      for (;;) ::pause();
    }
    ::close(ready[1]);
    char byte = 0;
    const bool well = pid_ > 0 && ::read(ready[0], &byte, 1) == 1;
    ::close(ready[0]);
    REQUIRE(well);
  }
  ~Stranger() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  // What a process that has only these capabilities finds.
  enum Finding { kSeen = 0, kUnknown = 1, kNobody = 2 };
  int SeenWith(Rights capabilities) const {
    return InChild([&] {
      if (!KeepRights(capabilities, capabilities).ok()) ::_exit(3);
      const absl::StatusOr<Tree> tree = Tree::Open("/");
      const NodeHolders found = FindHolders(*tree, {{.name = "full", .number = ::makedev(1, 7)}});
      for (const Holder& holder : found.by_node[0]) {
        if (holder.pid == pid_) ::_exit(kSeen);
      }
      ::_exit(found.complete ? kNobody : kUnknown);
    });
  }

 private:
  pid_t pid_ = -1;
};

TEST_CASE("what is dropped is gone from all five sets", "[agent]") {
  if (!IsRoot()) return;
  CHECK(InChild([] {
          if (!KeepRights(kSome, kOne).ok()) ::_exit(1);
          const ProcessRights caps = CapsOf("self");
          ::_exit(caps.permitted == kSome && caps.effective == kOne && caps.bounding == kSome &&
                          caps.inheritable == 0 && caps.ambient == 0 && caps.no_new_privs
                      ? 0
                      : 2);
        }) == 0);
}

TEST_CASE("what was dropped does not come back, neither by asking nor by a program", "[agent]") {
  if (!IsRoot()) return;
  CHECK(InChild([] {
          if (!KeepRights(kOne, kNoRights).ok()) ::_exit(1);
          // Asking for more gives what is left.
          if (!KeepRights(kSome, kSome).ok()) ::_exit(2);
          if (CapsOf("self").effective != kOne) ::_exit(3);
          // root's programs have all capabilities of the bounding set.
          ::execl("/bin/grep", "grep", "-q", "^CapPrm:.*0000000000200000$", "/proc/self/status",
                  nullptr);
          ::_exit(4);
        }) == 0);
}

TEST_CASE("a container without CAP_SETPCAP drops the rest all the same", "[agent]") {
  if (!IsRoot()) return;
  CHECK(InChild([] {
          // Its runtime left it these; the bounding set it cannot change.
          if (!KeepRights(kAgentRights, kAgentRights).ok()) ::_exit(1);
          if (!KeepRights(kOne, kOne).ok()) ::_exit(2);
          const ProcessRights caps = CapsOf("self");
          ::_exit(caps.permitted == kOne && caps.effective == kOne && caps.bounding == kAgentRights
                      ? 0
                      : 3);
        }) == 0);
}

TEST_CASE(
    "another user's descriptors are seen with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH, and "
    "with neither alone",
    "[agent]") {
  if (!IsRoot()) return;
  const Stranger stranger;
  CHECK(stranger.SeenWith(kLookRights) == Stranger::kSeen);
  CHECK(stranger.SeenWith(RightSet({CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH})) == Stranger::kSeen);
  // "Nobody" would be a lie.
  CHECK(stranger.SeenWith(kLookRights & ~RightSet({CAP_SYS_PTRACE})) == Stranger::kUnknown);
  CHECK(stranger.SeenWith(kLookRights & ~RightSet({CAP_DAC_READ_SEARCH})) == Stranger::kUnknown);
}

// A child that had a module to load and waits in a later step, seen by the loop.
int StackSeenByLoop(const std::vector<Action>& steps, size_t at) {
  return InChild([&] {
    if (!KeepRights(kAgentRights, kLoopRights).ok()) ::_exit(3);
    int ready[2] = {-1, -1};
    if (::pipe(ready) != 0) ::_exit(3);
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
      LeaveParent({ready[1]}, RightsFrom(steps, 0));
      UseOnly(RightsFrom(steps, at));
      ::close(ready[1]);
      for (;;) ::pause();
    }
    ::close(ready[1]);
    char byte = 0;
    if (::read(ready[0], &byte, 1) != 0) ::_exit(3);
    const Fd fd(::open(("/proc/" + std::to_string(child) + "/stack").c_str(), O_RDONLY));
    const bool seen = fd.valid() && ::read(fd.get(), &byte, 1) == 1;
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ::_exit(seen ? 0 : 1);
  });
}

TEST_CASE("a child keeps the right to load modules until the last one is loaded", "[agent]") {
  const PciAddress device = *PciAddress::Parse("0000:1b:00.0");
  const std::vector<Action> steps = {LoadModule{"vfio-pci"}, Unbind{device, "nvidia"},
                                     LoadModule{"mlx5-vfio-pci"}, Unbind{device, "mlx5_core"}};
  CHECK(RightsFrom(steps, 0) == kLoadRights);
  CHECK(RightsFrom(steps, 1) == kLoadRights);
  CHECK(RightsFrom(steps, 2) == kLoadRights);
  CHECK(RightsFrom(steps, 3) == kNoRights);
  CHECK(RightsFrom(steps, 4) == kNoRights);
}

TEST_CASE("where a child is stuck is seen, also after it has loaded a module", "[agent]") {
  if (!IsRoot()) return;
  if (::access("/proc/self/stack", R_OK) != 0) {
    WARN("skipped: no kernel stacks here");
    return;
  }
  const PciAddress device = *PciAddress::Parse("0000:1b:00.0");
  const std::vector<Action> steps = {LoadModule{"vfio-pci"}, Unbind{device, "nvidia"}};
  CHECK(StackSeenByLoop(steps, 1) == 0);
  // The kernel's rule, for which the right is given up.
  CHECK(StackSeenByLoop(steps, 0) == 1);
}

TEST_CASE("whether a group is open is unknown, not denied, where its node is another user's",
          "[agent]") {
  if (!IsRoot()) return;
  const ScratchDir dir;
  std::filesystem::create_directories(dir.path() + "/dev/vfio");
  const std::string node = dir.Write("dev/vfio/26", "");
  REQUIRE(::chown(node.c_str(), 65534, 65534) == 0);
  REQUIRE(::chmod(node.c_str(), 0600) == 0);
  const absl::StatusOr<Tree> tree = Tree::Open(dir.path());
  REQUIRE(tree.ok());
  CHECK(IsGroupOpen(*tree, 26) == false);
  CHECK(InChild([&tree] {
          if (!KeepRights(kAgentRights, kAgentRights).ok()) ::_exit(1);
          ::_exit(IsGroupOpen(*tree, 26) == std::nullopt ? 0 : 2);
        }) == 0);
  // A group of noiommu mode has another node.
  std::filesystem::rename(node, dir.path() + "/dev/vfio/noiommu-26");
  CHECK(InChild([&tree] {
          if (!KeepRights(kAgentRights, kAgentRights).ok()) ::_exit(1);
          ::_exit(IsGroupOpen(*tree, 26) == std::nullopt ? 0 : 2);
        }) == 0);
}

}  // namespace
}  // namespace vfio_agent
