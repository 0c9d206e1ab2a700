// Reported failures that take the whole agent to show, on simulated nodes: the smallest machine of
// each report is test/machines/cases/<id>.yaml.
#include <csignal>
#include <fstream>
#include <sstream>

#include "test/agent/node.h"

namespace vfio_agent {
namespace {

constexpr absl::Duration kLong = absl::Seconds(30);

// A configuration with NVIDIA's GPUs and, of their groups' other members, `item`.
std::string WithMember(const std::string& item) {
  return "resources: [{select: [{vendor: \"10de\"}], allowMembers: [" + item + "]}]\n";
}

// Many pictures, so that what is tried or said in each of them would show.
void PassPictures(const Daemon& daemon) {
  for (int i = 1; i <= 3; ++i) {
    daemon.Signal(SIGHUP);
    REQUIRE(Eventually([&] { return daemon.CountLines({"event=config_reloaded"}) >= i; }, kLong));
  }
}

// False where the same line of `event` stands twice in a row. A slow read on a busy machine may put
// another one between: that is news both times.
bool SaysNothingTwice(const Daemon& daemon, const std::string& event) {
  std::istringstream lines(daemon.Log());
  std::string last;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("event=" + event) == std::string::npos) continue;
    line.erase(0, line.find(" level="));  // the time
    if (line == last) return false;
    last = line;
  }
  return !last.empty();
}

TEST_CASE("VIA-07: the disk that the host runs from is never taken, not even where it is named",
          "[node]") {
  const Node node("cases/VIA-07");
  SECTION("nobody selected it: it spoils the group") {
    const ProgramResult result = node.Run({"bind"});
    CHECK(result.exit_code == 3);
    CHECK_THAT(result.out, Catch::Contains("foreign-member 0000:02:00.0"));
  }
  SECTION("it is in allowMembers: the mount is the reason") {
    const std::string config =
        node.dir().Write("config.yaml", WithMember("{address: \"0000:02:00.0\"}"));
    const ProgramResult result = node.Run({"bind", "--config", config});
    CHECK(result.exit_code == 3);
    CHECK_THAT(result.out, Catch::Contains("in-use-storage 0000:02:00.0") &&
                               Catch::Contains("carries nvme0n1p1, mounted on /\n") &&
                               Catch::Contains("remedy: unmount"));
  }
  CHECK(node.Writes().empty());
  CHECK(node.DriverOf("0000:01:00.0") == "nvidia");
  CHECK(node.DriverOf("0000:02:00.0") == "nvme");
}

TEST_CASE("VIA-07: the refusal outlives restarts and is not retried", "[node]") {
  const Node node("cases/VIA-07");
  const std::string config = node.dir().Write("config.yaml", WithMember("{vendor: \"144d\"}"));
  for (int start = 0; start < 2; ++start) {
    CAPTURE(start);
    Daemon daemon(node.DaemonArguments({"--config", config, "--resync", "20ms"}));
    REQUIRE_FALSE(
        daemon.WaitForLine({"event=group_refused", "code=in-use-storage"}, kLong).empty());
    PassPictures(daemon);
    INFO(daemon.Log());
    CHECK(SaysNothingTwice(daemon, "group_refused"));
    CHECK(daemon.CountLines({"event=bind_started"}) == 0);
    daemon.Signal(SIGTERM);
    CHECK(daemon.WaitForEnd(kLong) == 0);
  }
  CHECK(node.Writes().empty());
}

TEST_CASE("VIA-17: an adapter that the host's network uses is refused although it is named",
          "[node]") {
  const Node node("cases/VIA-17");
  const std::string config =
      node.dir().Write("config.yaml", WithMember("{address: \"0000:18:00.0\"}"));
  const ProgramResult result = node.Run({"bind", "--config", config});
  CHECK(result.exit_code == 3);
  CHECK_THAT(result.out, Catch::Contains("in-use-network 0000:18:00.0") &&
                             Catch::Contains("carries ibp24s0, which is up with an address") &&
                             Catch::Contains("mlx5_0, whose port 1 is active"));
  CHECK(node.Writes().empty());

  SECTION("and goes along where an operator has overruled that, which is said each time") {
    node.dir().Write("config.yaml", WithMember("{address: \"0000:18:00.0\"}") +
                                        "guard: {override: [\"0000:18:00.0\"]}\n");
    SECTION("by the daemon") {
      const Daemon daemon(node.DaemonArguments({"--config", config}));
      CHECK_FALSE(daemon
                      .WaitForLine({"event=warning", "code=in-use-network", "0000:18:00.0",
                                    "overruled by guard.override"},
                                   kLong)
                      .empty());
      CHECK_FALSE(
          daemon.WaitForLine({"event=bind_started", "in-use-network 0000:18:00.0"}, kLong).empty());
      CHECK(Eventually([&] { return node.DriverOf("0000:18:00.0") == "vfio-pci"; }, kLong));
    }
    SECTION("by bind") {
      const ProgramResult overruled = node.Run({"bind", "--config", config});
      CHECK(overruled.exit_code == 0);
      CHECK_THAT(overruled.err, Catch::Contains("event=warning") &&
                                    Catch::Contains("overruled by guard.override"));
      CHECK(node.DriverOf("0000:18:00.0") == "vfio-pci");
    }
  }
}

TEST_CASE("BIND-01: a GPU that a process has open is refused with its holder, before any write",
          "[node]") {
  const Node node("cases/BIND-01");
  const ProgramResult result = node.Run({"bind"});
  CHECK(result.exit_code == 3);
  CHECK_THAT(result.out, Catch::Contains("in-use-holder 0000:8a:00.0") &&
                             Catch::Contains("is held open by pid 4242 (python3): /dev/nvidia0"));
  CHECK(node.Writes().empty());
}

TEST_CASE("BIND-03: the persistence daemon is named with its exact remedy, other GPUs are bound",
          "[node]") {
  const Node node("cases/BIND-03");
  const ProgramResult result = node.Run({"bind"});
  CHECK(result.exit_code == 3);
  CHECK_THAT(
      result.out,
      Catch::Contains("pid 37526 (nvidia-persiste): /run/nvidia/driver/dev/nvidia0") &&
          Catch::Contains("systemctl stop nvidia-persistenced (or nvidia-smi -i 0000:65:00.0 -pm "
                          "0)"));
  CHECK(node.DriverOf("0000:65:00.0") == "nvidia");
  CHECK(node.DriverOf("0000:ca:00.0") == "vfio-pci");
  CHECK_THAT(node.Writes(), !Catch::Contains("0000:65:00.0"));
}

TEST_CASE("BIND-05: a device without a group is told in words, and nothing is tried", "[node]") {
  const Node node("cases/BIND-05");
  const ProgramResult result = node.Run({"bind"});
  CHECK(result.exit_code == 3);
  CHECK_THAT(result.out, Catch::Contains("no-iommu-group 0000:01:00.0") &&
                             Catch::Contains("has no IOMMU group"));
  const Daemon daemon(node.DaemonArguments({"--resync", "20ms"}));
  REQUIRE_FALSE(daemon.WaitForLine({"event=group_refused", "no-iommu-group"}, kLong).empty());
  PassPictures(daemon);
  CHECK(SaysNothingTwice(daemon, "group_refused"));
  CHECK(daemon.CountLines({"Invalid argument"}) == 0);
  CHECK(node.Writes().empty());
}

TEST_CASE("BIND-09: after a reboot the group is bound again, whatever the kubelet remembers",
          "[node][grpc]") {
  const Node before("cases/BIND-09");
  // The next boot: another kernel below the same state and kubelet directories.
  const Node after("cases/BIND-09", "files: {proc/sys/kernel/random/boot_id: \"next\\n\"}\n");
  const auto arguments = [&before](const Node& node) {
    return std::vector<std::string>{"--root",
                                    node.root(),
                                    "--state-dir",
                                    before.state_dir(),
                                    "--device-plugin-dir",
                                    before.kubelet_dir(),
                                    "--kubelet-root-dir",
                                    before.kubelet_root(),
                                    "--resync",
                                    "200ms"};
  };
  const auto kubelet = before.StartKubelet();
  {
    Daemon daemon(arguments(before));
    INFO(daemon.Log());
    REQUIRE_FALSE(daemon.WaitForLine({"event=registered"}, kLong).empty());
    kubelet->SetPod("default", "virt-launcher-vm", "compute", kubelet->Resources().begin()->first,
                    {"0000:04:00.0"});
    daemon.Signal(SIGKILL);  // as power does
    CHECK(daemon.WaitForEnd(kLong) == 128 + SIGKILL);
  }
  REQUIRE(before.DriverOf("0000:04:00.0") == "vfio-pci");
  REQUIRE(after.DriverOf("0000:04:00.0") == "nouveau");
  const Daemon daemon(arguments(after));
  REQUIRE(Eventually([&] { return after.DriverOf("0000:04:00.1") == "vfio-pci"; }, kLong));
  INFO(daemon.Log());
  CHECK(after.DriverOf("0000:04:00.0") == "vfio-pci");
  CHECK(kubelet->WaitFor(
      [](const FakeResources& resources) {
        return resources.size() == 1 && resources.begin()->second.registrations >= 2 &&
               resources.begin()->second.Healthy() == 1;
      },
      kLong));
}

TEST_CASE("BIND-15: a probe that changes nothing and says nothing is told, device and group",
          "[node]") {
  const Node node("cases/BIND-15",
                  "faults: [{device: \"0000:3e:00.0\", op: probe, errno: EINVAL}]\n");
  const ProgramResult result = node.Run({"bind"});
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.out, Catch::Contains("group 40: failed") &&
                             Catch::Contains(": 0000:3d:00.0 0000:3e:00.0\n") &&
                             Catch::Contains("probe-refused 0000:3e:00.0"));
  CHECK(node.DriverOf("0000:3d:00.0") == "nvidia");  // a group goes whole or not at all
  for (const char* other : {"40", "41", "b1", "b2", "b4", "b5"}) {
    CAPTURE(other);
    CHECK(node.DriverOf("0000:" + std::string(other) + ":00.0") == "vfio-pci");
  }
}

TEST_CASE("POWR-03: a GPU whose memory the boot console holds is refused with the owner of it",
          "[node]") {
  const Node node("cases/POWR-03");
  const ProgramResult result = node.Run({"bind"});
  CHECK(result.exit_code == 3);
  CHECK_THAT(result.out, Catch::Contains("in-use-display 0000:b3:00.0") &&
                             Catch::Contains("has its memory e0000000-e02fffff held by efifb"));
  CHECK(node.Writes().empty());
}

TEST_CASE("POWR-03: the console's memory counts without a driver and on vfio-pci as well",
          "[node]") {
  const Node node("cases/POWR-03");
  SECTION("without a driver") {
    std::ofstream(node.root() + "/sys/bus/pci/drivers/nvidia/unbind") << "0000:b3:00.0";
    REQUIRE(node.DriverOf("0000:b3:00.0").empty());
  }
  SECTION("on vfio-pci: its guest would not start") {
    node.Control("rebind 0000:b3:00.0 vfio-pci");
    REQUIRE(node.DriverOf("0000:b3:00.0") == "vfio-pci");
  }
  const std::string writes = node.Writes();
  const ProgramResult result = node.Run({"bind"});
  CHECK(result.exit_code == 3);
  CHECK_THAT(result.out, Catch::Contains("in-use-display 0000:b3:00.0"));
  CHECK(node.Writes() == writes);
}

TEST_CASE("KUBE-02: GPUs that machines have open are served, all eight, without a single write",
          "[node][grpc]") {
  const Node node("cases/KUBE-02");
  const auto kubelet = node.StartKubelet();
  kubelet->SetPod("default", "virt-launcher-vm", "compute", kH100, {"0000:1b:00.0"});
  for (int start = 0; start < 3; ++start) {
    CAPTURE(start);
    Daemon daemon(node.DaemonArguments());
    REQUIRE_FALSE(daemon.WaitForLine({"event=registered"}, kLong).empty());
    REQUIRE(kubelet->WaitFor(
        [start](const FakeResources& resources) {
          const auto found = resources.find(kH100);
          return found != resources.end() && found->second.registrations >= start + 1 &&
                 found->second.Healthy() == 8;
        },
        kLong));
    PassPictures(daemon);
    daemon.Signal(start == 1 ? SIGKILL : SIGTERM);
    CHECK(daemon.WaitForEnd(kLong) >= 0);
  }
  const ProgramResult result = node.Run({"release", "0000:1b:00.0"});
  CHECK(result.exit_code == 3);
  CHECK_THAT(result.out, Catch::Contains("held") && Catch::Contains("pid 7001"));
  CHECK(node.Writes().empty());
}

TEST_CASE("MISC-02: a GPU that is plugged in from outside is left alone", "[node][grpc]") {
  const Node node("cases/MISC-02");
  const Daemon daemon(node.DaemonArguments());
  REQUIRE_FALSE(daemon.WaitForLine({"event=iommu_on"}, kLong).empty());
  node.Control("add 0000:2d:00.0");
  REQUIRE_FALSE(
      daemon.WaitForLine({"event=group_refused", "code=excluded", "0000:2d:00.0"}, kLong).empty());
  PassPictures(daemon);
  CHECK(node.DriverOf("0000:2d:00.0") == "nvidia");
  CHECK(node.Writes().empty());
}

TEST_CASE("MISC-02: an external GPU that is named by its address comes and goes", "[node][grpc]") {
  const Node node("cases/MISC-02");
  const std::string config = node.dir().Write(
      "config.yaml",
      "resources: [{name: example.org/egpu, select: [{address: \"0000:2d:00.0\"}]}]\n");
  const auto kubelet = node.StartKubelet();
  Daemon daemon(node.DaemonArguments({"--config", config}));
  REQUIRE_FALSE(daemon.WaitForLine({"event=iommu_on"}, kLong).empty());
  node.Control("add 0000:2d:00.0");
  REQUIRE(kubelet->WaitHealthy("example.org/egpu", 1, kLong));
  node.Control("remove 0000:2d:00.0");
  REQUIRE(kubelet->WaitHealthy("example.org/egpu", 0, kLong));
  CHECK(kubelet->Resources().at("example.org/egpu").devices.size() == 1);
  node.Control("add 0000:2d:00.0");
  CHECK(kubelet->WaitHealthy("example.org/egpu", 1, kLong));
  daemon.Signal(SIGTERM);
  CHECK(daemon.WaitForEnd(kLong) == 0);
}

}  // namespace
}  // namespace vfio_agent
