// The agent in the environment of the overlay without `privileged: true`, read from its manifest,
// on a simulated node; and what it says where a piece of that environment is taken away.
#include <unistd.h>

#include <csignal>

#include "agent/privileges/rights.h"
#include "test/agent/node.h"

namespace vfio_agent {
namespace {

constexpr absl::Duration kLong = absl::Seconds(30);
constexpr char kUnit[] = "0000:1b:00.0";
using Words = std::vector<std::string>;

bool IsRoot() {
  if ((PermittedRights() & RightSet({CAP_SYS_ADMIN})) != 0) return true;
  WARN("skipped: only root can make a container's environment");
  return false;
}

class Pod {
 public:
  Pod() { std::filesystem::create_directory(node.state_dir()); }

  // `changes`: more options of pod-run.
  Words Inside(const Words& changes = {}) const {
    Words words = {POD_RUN, "--manifest", UNPRIVILEGED, "--node", node.root()};
    for (const auto& [path, dir] :
         {std::pair<std::string, std::string>{"/var/lib/kubelet/device-plugins",
                                              node.kubelet_dir()},
          {"/var/lib/kubelet/pod-resources", node.kubelet_root() + "/pod-resources"},
          {"/var/lib/vfio-agent", node.state_dir()}}) {
      words.insert(words.end(), {"--at", path + "=" + dir});
    }
    words.insert(words.end(), changes.begin(), changes.end());
    return words;
  }
  ProgramResult Run(Words words) const {
    return RunAgent(node.With(std::move(words)), {}, Inside());
  }

  Node node{"hgx-8gpu"};
  std::unique_ptr<FakeKubelet> kubelet = node.StartKubelet();
};

TEST_CASE("without privileged the agent binds, serves, answers Allocate and releases",
          "[node][grpc]") {
  if (!IsRoot()) return;
  const Pod pod;
  {
    Daemon daemon(pod.node.DaemonArguments(), pod.Inside());
    const bool healthy = pod.kubelet->WaitHealthy(kH100, 8, kLong);
    INFO(daemon.Log());
    REQUIRE(healthy);
    CHECK(daemon.CountLines({"event=bind_done"}) == 8);
    const auto answer = pod.kubelet->Allocate(kH100, {kUnit});
    REQUIRE(answer.ok());
    CHECK(answer->devices_size() == 2);
    CHECK(pod.kubelet->PreStart(kH100, {kUnit}).ok());
    CHECK_FALSE(
        daemon.WaitForLine({"event=privileges_missing", "\"CAP_SYS_ADMIN, CAP_SYS_MODULE\""}, kLong)
            .empty());
    daemon.Signal(SIGTERM);
    CHECK(daemon.WaitForEnd(absl::Seconds(5)) == 0);
  }
  CHECK(pod.node.DriverOf(kUnit) == "vfio-pci");
  const ProgramResult released = pod.Run({"release"});
  INFO(released.out << released.err);
  CHECK(released.exit_code == 0);
  CHECK(pod.node.DriverOf(kUnit) == "nvidia");
}

struct Row {
  std::string what;
  Words changes;
  Words said;  // parts of one line of the log
};

TEST_CASE("each piece of the environment that is missing shows as the guide says", "[node][grpc]") {
  if (!IsRoot()) return;
  const Row row =
      GENERATE(Row{"a capability for descriptors",
                   {"--without", "SYS_PTRACE"},
                   {"event=privileges_missing", "without CAP_SYS_PTRACE which processes"}},
               Row{"a capability for other users' descriptors",
                   {"--without", "DAC_READ_SEARCH"},
                   {"event=privileges_missing", "without CAP_DAC_READ_SEARCH what other users'"}},
               Row{"writable devices",
                   {"--read-only", "/sys/devices"},
                   {"event=bind_failed", "code=permission-denied", "d3cold_allowed", "Read-only"}},
               Row{"devices from the host",
                   {"--without", "/sys/devices"},
                   {"event=privileges_missing", "a writable /sys"}},
               Row{"a writable bus",
                   {"--without", "/sys/bus/pci"},
                   {"event=bind_failed", "code=permission-denied", "unbind", "Read-only"}},
               Row{"the groups' nodes",
                   {"--without", "/dev/vfio"},
                   {"event=bind_failed", "code=node-missing", "dev/vfio/"}},
               Row{"the kubelet's directory",
                   {"--without", "/var/lib/kubelet/device-plugins"},
                   {"event=register_failed", "Read-only"}},
               Row{"who has what",
                   {"--without", "/var/lib/kubelet/pod-resources"},
                   {"event=pods_unknown", "pod-resources"}},
               Row{"the journal",
                   {"--without", "/var/lib/vfio-agent"},
                   {"event=bind_failed", "code=permission-denied", "Read-only", "stateDir"}});
  CAPTURE(row.what);
  const Pod pod;
  const Daemon daemon(pod.node.DaemonArguments(), pod.Inside(row.changes));
  const std::string line = daemon.WaitForLine(row.said, kLong);
  INFO(daemon.Log());
  CHECK_FALSE(line.empty());
}

TEST_CASE("what the overlay leaves out on purpose is not missed once it is added", "[node][grpc]") {
  if (!IsRoot()) return;
  const Pod pod;
  const Daemon daemon(pod.node.DaemonArguments(),
                      pod.Inside({"--with", "SYS_ADMIN", "--with", "SYS_MODULE"}));
  REQUIRE(pod.kubelet->WaitHealthy(kH100, 8, kLong));
  CHECK(daemon.CountLines({"event=privileges_missing"}) == 0);
}

}  // namespace
}  // namespace vfio_agent
