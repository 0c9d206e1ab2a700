// Virtual functions end to end: made, bound, offered and removed again on simulated nodes.
#include <csignal>
#include <filesystem>
#include <fstream>

#include "test/agent/fault_node.h"
#include "test/agent/node.h"

namespace vfio_agent {
namespace {

constexpr absl::Duration kLong = absl::Seconds(30);
constexpr char kPf[] = "0000:0b:00.0";
constexpr char kVf1[] = "0000:0b:00.1";
constexpr char kVf2[] = "0000:0b:00.2";
constexpr char kVfs[] = "nvidia.com/vf";

std::string Machine(const std::string& more = "", const std::string& device = "") {
  return "name: sriov\nhost: {iommu_active: true, iommu: intel}\n" + more +
         "devices:\n- {address: \"0000:0b:00.0\", vendor: \"10de\", device: \"2bb5\", class: "
         "\"0x030200\", driver: nvidia, iommu_group: 1, sriov_totalvfs: 4, sriov_vf_driver: "
         "nvidia" +
         device + "}\n";
}

class SriovNode {
 public:
  explicit SriovNode(const std::string& machine = Machine(), const std::string& sriov = "{vfs: 2}")
      : node(Node::MachineText{machine}),
        config(node.dir().Write("config.yaml",
                                "resources: [{name: nvidia.com/vf, select: [{vendor: \"10de\"}], "
                                "sriov: " +
                                    sriov + "}]\n")) {}

  ProgramResult Run(std::vector<std::string> words) const {
    words.insert(words.end(), {"--config", config});
    return node.Run(std::move(words));
  }
  std::vector<std::string> Arguments(std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"--config", config});
    return node.DaemonArguments(std::move(more));
  }
  std::string Attribute(const std::string& name) const {
    std::ifstream file(node.root() + "/sys/bus/pci/devices/" + kPf + "/" + name);
    std::string text;
    std::getline(file, text);
    return text;
  }
  bool Has(const std::string& address) const {
    return std::filesystem::exists(node.root() + "/sys/bus/pci/devices/" + address);
  }
  bool AreBound() const {
    return node.DriverOf(kVf1) == "vfio-pci" && node.DriverOf(kVf2) == "vfio-pci";
  }
  bool HasRecords() const {
    std::error_code error;
    return std::filesystem::directory_iterator(node.state_dir() + "/devices", error) !=
           std::filesystem::directory_iterator();
  }
  // All is as it was at boot.
  void CheckHome() const {
    CHECK(node.DriverOf(kPf) == "nvidia");
    CHECK_FALSE(Has(kVf1));
    CHECK(Attribute("sriov_numvfs") == "0");
    CHECK(Attribute("sriov_drivers_autoprobe") == "1");
    CHECK_FALSE(HasRecords());
  }
  std::string GroupOf(const std::string& address) const {
    return std::filesystem::read_symlink(node.root() + "/sys/bus/pci/devices/" + address +
                                         "/iommu_group")
        .filename()
        .string();
  }

  Node node;
  std::string config;
};

TEST_CASE(
    "the daemon makes VFs on a free physical function, binds and offers them, and the next "
    "one adopts them",
    "[node][grpc]") {
  const SriovNode sriov;
  const auto kubelet = sriov.node.StartKubelet();
  {
    Daemon daemon(sriov.Arguments());
    const bool offered = kubelet->WaitHealthy(kVfs, 2, kLong);
    INFO(daemon.Log());
    REQUIRE(offered);
    CHECK(sriov.AreBound());
    CHECK(sriov.node.DriverOf(kPf) == "nvidia");
    CHECK(kubelet->Resources().at(kVfs).devices.count(kPf) == 0);
    CHECK_FALSE(daemon.WaitForLine({"event=vfs_ready", kPf}, kLong).empty());
    CHECK(daemon.CountLines({"event=bind_done", kPf}) == 1);
    daemon.Signal(SIGTERM);
    CHECK(daemon.WaitForEnd(kLong) == 0);
  }
  const std::string writes = sriov.node.Writes();
  Daemon next(sriov.Arguments());
  REQUIRE_FALSE(next.WaitForLine({"event=registered"}, kLong).empty());
  CHECK(kubelet->WaitHealthy(kVfs, 2, kLong));
  next.Signal(SIGTERM);
  CHECK(next.WaitForEnd(kLong) == 0);
  CHECK(sriov.node.Writes() == writes);
  const ProgramResult release = sriov.Run({"release"});
  INFO(release.out << release.err);
  CHECK(release.exit_code == 0);
  sriov.CheckHome();
}

TEST_CASE("onExit: release removes the VFs that the daemon has made", "[node]") {
  const SriovNode sriov;
  const auto kubelet = sriov.node.StartKubelet();
  Daemon daemon(sriov.Arguments({"--on-exit", "release"}));
  REQUIRE(Eventually([&] { return sriov.AreBound(); }, kLong));
  REQUIRE_FALSE(daemon.WaitForLine({"event=group_ready"}, kLong).empty());
  daemon.Signal(SIGTERM);
  CHECK(daemon.WaitForEnd(kLong) == 0);
  INFO(daemon.Log());
  sriov.CheckHome();
}

TEST_CASE("bind makes VFs and binds them in one go; release by a resource's name removes them",
          "[node]") {
  const SriovNode sriov;
  const ProgramResult plan = sriov.Run({"plan"});
  CHECK_THAT(plan.out, Catch::Contains("0000:0b:00.0  10de:2bb5  030200  physical   nvidia") &&
                           Catch::Contains("echo 2 > /sys/bus/pci/devices/0000:0b:00.0/"
                                           "sriov_numvfs"));
  const ProgramResult bind = sriov.Run({"bind"});
  INFO(bind.out << bind.err);
  CHECK(bind.exit_code == 0);
  CHECK_THAT(bind.out, Catch::Contains("group 1: virtual functions made nvidia.com/vf: ") &&
                           Catch::Contains(": bound nvidia.com/vf: 0000:0b:00.1"));
  REQUIRE(sriov.AreBound());
  CHECK(sriov.Run({"plan", "--exit-code"}).exit_code == 0);
  const ProgramResult again = sriov.Run({"bind"});
  CHECK(again.exit_code == 0);
  CHECK_THAT(again.out, Catch::Contains("group 1: has its virtual functions"));
  CHECK_THAT(sriov.Run({"explain", kPf}).out,
             Catch::Contains("stays with the host; its virtual functions are there"));
  CHECK_THAT(sriov.Run({"explain", kPf}).out,
             Catch::Contains("physical function with 2 of 4 virtual functions"));
  CHECK_THAT(sriov.Run({"explain", kVf1}).out, Catch::Contains("virtual function of 0000:0b:00.0"));
  CHECK(sriov.Run({"release", kVfs}).exit_code == 0);
  sriov.CheckHome();
}

TEST_CASE("bind of a physical function alone makes its VFs and binds them", "[node]") {
  const SriovNode sriov;
  CHECK(sriov.Run({"bind", kPf}).exit_code == 0);
  CHECK(sriov.AreBound());
}

TEST_CASE("a physical function that a process has open gets no VFs", "[node]") {
  const SriovNode sriov(Machine(
      "files:\n  proc/driver/nvidia/gpus/0000:0b:00.0/information: \"Model: \\t\\t NVIDIA\\n"
      "Device Minor: \\t 0\\n\"\nprocesses:\n- {pid: 4242, comm: python3, fds: [/dev/nvidia0]}\n"));
  const ProgramResult result = sriov.Run({"bind"});
  CHECK(result.exit_code == 3);
  CHECK_THAT(result.out, Catch::Contains("in-use-holder 0000:0b:00.0"));
  CHECK(sriov.node.Writes().empty());
}

TEST_CASE("what the physical function's driver answers is told, and autoprobe is put back",
          "[node]") {
  const auto [error, code, remedy] = GENERATE(table<std::string, std::string, std::string>(
      {{"EBUSY", "pf-has-vfs", "sriov_numvfs"},
       {"ENOSYS", "probe-refused", "this driver makes no virtual functions by sriov_numvfs"},
       {"ENOMEM", "probe-refused", "above 4G"},
       {"EIO", "probe-refused", "dmesg | grep 0000:0b:00.0"}}));
  CAPTURE(error);
  const SriovNode sriov(
      Machine("faults: [{device: \"0000:0b:00.0\", op: vfs, errno: " + error + "}]\n"));
  const ProgramResult result = sriov.Run({"bind"});
  INFO(result.out << result.err);
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.out, Catch::Contains("group 1: failed") &&
                             Catch::Contains(code + " 0000:0b:00.0") && Catch::Contains(remedy));
  CHECK_THAT(result.err, Catch::Contains("errno=" + error) && Catch::Contains("vfs=2") &&
                             Catch::Contains("next=\"what was moved is back\""));
  sriov.CheckHome();
}

TEST_CASE("a driver that refuses once is asked again, and then the VFs are there", "[node]") {
  const SriovNode sriov(
      Machine("faults: [{device: \"0000:0b:00.0\", op: vfs, errno: EIO, count: 1}]\n"));
  const Daemon daemon(sriov.Arguments());
  CHECK_FALSE(
      daemon.WaitForLine({"event=bind_failed", "errno=EIO", "tried again in"}, kLong).empty());
  CHECK(Eventually([&] { return sriov.AreBound(); }, kLong));
}

TEST_CASE("kill -9 while the VFs are made: the successor finishes, or puts back", "[node]") {
  const bool made = GENERATE(false, true);
  const bool wanted = GENERATE(true, false);
  CAPTURE(made, wanted);
  const SriovNode sriov(
      Machine("faults: [{device: \"0000:0b:00.0\", op: vfs, block: forever, "
              "count: 1, unkillable: " +
              std::string(made ? "true" : "false") + "}]\n"));
  {
    Daemon daemon(sriov.Arguments());
    const auto is_making = [&] {
      return sriov.node.Writes().find("sriov_numvfs=2 running") != std::string::npos;
    };
    REQUIRE(Eventually(is_making, kLong));
    KillWithChildren(daemon);
  }
  // A write that nothing ends happens all the same.
  if (made) sriov.node.Control(std::string("release-blocked ") + kPf);
  REQUIRE(
      Eventually([&] { return sriov.node.Writes().find(" running") == std::string::npos; }, kLong));
  REQUIRE(sriov.Has(kVf1) == made);
  const std::string config = wanted ? sriov.config
                                    : sriov.node.dir().Write("other.yaml",
                                                             "resources: [{select: "
                                                             "[{address: \"0000:ff:"
                                                             "00.0\"}]}]\n");
  const Daemon next(sriov.node.DaemonArguments({"--config", config}));
  if (wanted) {
    CHECK(Eventually([&] { return sriov.AreBound(); }, kLong));
  } else {
    CHECK(Eventually([&] { return !sriov.HasRecords(); }, kLong));
    sriov.CheckHome();
  }
  INFO(next.Log());
}

TEST_CASE("VFs of which a guest has one are not removed", "[node]") {
  const SriovNode sriov;
  REQUIRE(sriov.Run({"bind"}).exit_code == 0);
  sriov.node.Control("hold " + sriov.GroupOf(kVf2) + " 4711 qemu");
  const std::string writes = sriov.node.Writes();
  const ProgramResult result = sriov.Run({"release"});
  CHECK(result.exit_code == 3);
  CHECK_THAT(result.out, Catch::Contains("held ") && Catch::Contains("pid 4711 (qemu)"));
  CHECK(sriov.node.Writes() == writes);
  sriov.node.Control("free " + sriov.GroupOf(kVf2));
  CHECK(sriov.Run({"release"}).exit_code == 0);
  sriov.CheckHome();
}

TEST_CASE("release leaves VFs alone that a running daemon serves", "[node][grpc]") {
  const SriovNode sriov;
  const auto kubelet = sriov.node.StartKubelet();
  const Daemon daemon(sriov.Arguments());
  REQUIRE(kubelet->WaitHealthy(kVfs, 2, kLong));
  const ProgramResult result = sriov.Run({"release", kPf});
  CHECK(result.exit_code == 3);
  CHECK_THAT(result.out, Catch::Contains("serves group"));
  CHECK(sriov.AreBound());
}

TEST_CASE("VFs that somebody else has made are taken, given back and never removed", "[node]") {
  const SriovNode sriov(Machine("", ", sriov_numvfs: 2"), "{}");
  const ProgramResult bind = sriov.Run({"bind"});
  INFO(bind.out << bind.err);
  CHECK(bind.exit_code == 0);
  REQUIRE(sriov.AreBound());
  CHECK(sriov.Run({"release"}).exit_code == 0);
  CHECK(sriov.node.DriverOf(kVf1) == "nvidia");
  CHECK(sriov.Attribute("sriov_numvfs") == "2");
}

}  // namespace
}  // namespace vfio_agent
