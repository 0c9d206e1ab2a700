// Drift and hot plug: the node changes behind the agent's back. The unit turns unhealthy with a
// reason, is healed where that is allowed, and is healthy again.
#include <csignal>

#include "absl/strings/str_format.h"
#include "test/agent/node.h"

namespace vfio_agent {
namespace {

constexpr absl::Duration kLong = absl::Seconds(30);
constexpr char kGpu[] = "nvidia.com/GPU";
constexpr char kConfig[] =
    "resources: [{name: nvidia.com/GPU, select: [{vendor: \"10de\", class: [\"0300\", "
    "\"0302\"]}]}]";

// A node of eight GPUs with all of them healthy: cards 0000:01 to 0000:04 in one group with their
// audio functions, cards 0000:41 to 0000:44 alone.
class Served {
 public:
  explicit Served(const std::string& more = "")
      : node_("mixed-8gpu"),
        kubelet_(node_.StartKubelet()),
        daemon_(node_.DaemonArguments(
            {"--config", node_.dir().Write("config.yaml", kConfig + more), "--resync", "100ms"})) {
    INFO(daemon_.Log());
    REQUIRE(kubelet_->WaitHealthy(kGpu, 8, kLong));
  }

  Node& node() { return node_; }
  FakeKubelet& kubelet() { return *kubelet_; }
  Daemon& daemon() { return daemon_; }

  bool WaitUnit(const std::string& unit, bool healthy) const {
    return kubelet_->WaitFor(
        [&](const FakeResources& resources) {
          return resources.at(kGpu).devices.at(unit).healthy == healthy;
        },
        kLong);
  }
  // Waits for one more picture than there has been.
  void WaitForPicture() {
    const int before = daemon_.CountLines({"event=config_reloaded"});
    daemon_.Signal(SIGHUP);
    REQUIRE(
        Eventually([&] { return daemon_.CountLines({"event=config_reloaded"}) > before; }, kLong));
  }

 private:
  Node node_;
  std::unique_ptr<FakeKubelet> kubelet_;
  Daemon daemon_;
};

// The event of a unit's change, with all of `parts`.
std::string UnitEvent(const Daemon& daemon, const char* name, const std::string& unit,
                      const std::string& part = "") {
  return daemon.WaitForLine({std::string("event=") + name, "unit=" + unit, part}, kLong);
}

TEST_CASE("a member that somebody rebinds: its unit is unhealthy with the reason, and healed",
          "[node][grpc]") {
  Served served;
  const std::string member = GENERATE("0000:01:00.0", "0000:01:00.1");
  const std::string home = member.ends_with('0') ? "nvidia" : "snd_hda_intel";
  served.node().Control("rebind " + member + " " + home);
  CHECK_THAT(UnitEvent(served.daemon(), "unit_unhealthy", "0000:01:00.0"),
             Catch::Contains("driver-changed: " + member) &&
                 Catch::Contains("is not on vfio-pci any more"));
  CHECK_FALSE(UnitEvent(served.daemon(), "unit_healthy", "0000:01:00.0").empty());
  REQUIRE(served.WaitUnit("0000:01:00.0", true));
  CHECK(served.node().DriverOf(member) == "vfio-pci");
  CHECK(served.daemon().CountLines({"event=unit_unhealthy"}) == 1);  // and no other unit's
}

TEST_CASE("what took a drifted device from its guests can be read from list", "[node][grpc]") {
  Served served;
  served.node().Control("hold 21 5021 qemu-kvm");
  served.node().Control("rebind 0000:41:00.0 nvidia");
  REQUIRE(served.WaitUnit("0000:41:00.0", false));
  const nlohmann::json list = served.node().RunJson(
      {"list", "resources", "--config", served.node().dir().path() + "/config.yaml"});
  const auto& unit = list.at("resources").at(0).at("units").at(4);
  CHECK(unit.at("id") == "0000:41:00.0");
  CHECK(unit.at("state") == "unhealthy");
  CHECK_THAT(unit.at("reason").get<std::string>(), Catch::Contains("held: group 21"));
}

TEST_CASE("a drifted unit that somebody has is not healed until it is free", "[node][grpc]") {
  Served served;
  const bool pod = GENERATE(true, false);
  CAPTURE(pod);
  if (pod) {
    served.kubelet().SetPod("default", "vm", "compute", kGpu, {"0000:41:00.0"});
  } else {
    served.node().Control("hold 21 5021 qemu-kvm");
  }
  const std::string writes = served.node().Writes();
  served.node().Control("rebind 0000:41:00.0 nvidia");
  CHECK_THAT(UnitEvent(served.daemon(), "unit_unhealthy", "0000:41:00.0"),
             Catch::Contains("held: group 21 is in use by") &&
                 Catch::Contains(pod ? "pod default/vm" : "qemu-kvm"));
  for (int i = 0; i < 3; ++i) served.WaitForPicture();
  CHECK(served.node().Writes() == writes);
  CHECK(served.kubelet().Resources().at(kGpu).devices.contains("0000:41:00.0"));

  if (pod) {
    CHECK(served.kubelet().RemovePod("default", "vm"));
  } else {
    served.node().Control("free 21");
  }
  CHECK(served.WaitUnit("0000:41:00.0", true));
  CHECK(served.node().DriverOf("0000:41:00.0") == "vfio-pci");
}

TEST_CASE("a device that the agent has adopted, drifted while a pod has it, is left alone as well",
          "[node][grpc]") {
  const Node node("mixed-8gpu");
  const auto kubelet = node.StartKubelet();
  const std::string config = node.dir().Write("config.yaml", kConfig);
  REQUIRE(RunAgent({"bind", "--root", node.root(), "--config", config, "--state-dir",
                    node.dir().path() + "/other"})
              .exit_code == 0);
  const Daemon daemon(node.DaemonArguments({"--config", config, "--resync", "100ms"}));
  INFO(daemon.Log());
  REQUIRE(kubelet->WaitHealthy(kGpu, 8, kLong));
  REQUIRE_FALSE(daemon.WaitForLine({"event=adopted", "group=21"}, kLong).empty());
  kubelet->SetPod("default", "vm", "compute", kGpu, {"0000:41:00.0"});
  const std::string writes = node.Writes();
  node.Control("rebind 0000:41:00.0 nvidia");
  CHECK_THAT(UnitEvent(daemon, "unit_unhealthy", "0000:41:00.0"),
             Catch::Contains("held: group 21 is in use by pod default/vm"));
  CHECK(node.Writes() == writes);
  CHECK(node.DriverOf("0000:41:00.0") == "nvidia");
}

TEST_CASE("a process that has a group open holds it also where no record and no driver tells so",
          "[node]") {
  const Node node("mixed-8gpu");
  node.Control("hold 21 5021 qemu-kvm");
  const std::string config = node.dir().Write("config.yaml", kConfig);
  const ProgramResult result = node.Run({"bind", "group:21", "--config", config});
  INFO(result.out << result.err);
  CHECK(result.exit_code == 3);
  CHECK_THAT(result.out,
             Catch::Contains("held: group 21 is in use by") && Catch::Contains("qemu-kvm"));
  CHECK(node.Writes().empty());
}

TEST_CASE("a module that loads and takes an unbound sibling: the unit is unhealthy until it goes",
          "[node][grpc]") {
  const Node node("mixed-8gpu");
  node.Control("unload snd_hda_intel");
  const auto kubelet = node.StartKubelet();
  const std::string config = node.dir().Write(
      "config.yaml",
      "resources: [{name: nvidia.com/GPU, select: [{vendor: \"10de\", class: [\"0300\"]}], "
      "companions: none}]\n");
  const Daemon daemon(node.DaemonArguments({"--config", config, "--resync", "100ms"}));
  INFO(daemon.Log());
  REQUIRE(kubelet->WaitHealthy(kGpu, 4, kLong));
  CHECK(node.DriverOf("0000:01:00.1").empty());

  node.Control("rebind 0000:01:00.1 snd_hda_intel");
  CHECK_THAT(UnitEvent(daemon, "unit_unhealthy", "0000:01:00.0"),
             Catch::Contains("foreign-member: ") && Catch::Contains("0000:01:00.1"));
  REQUIRE(kubelet->WaitHealthy(kGpu, 3, kLong));
  CHECK_FALSE(kubelet->Allocate(kGpu, {"0000:01:00.0"}).ok());
  CHECK(node.DriverOf("0000:01:00.1") == "snd_hda_intel");  // not ours to take

  node.Control("unload snd_hda_intel");
  CHECK(kubelet->WaitHealthy(kGpu, 4, kLong));
}

TEST_CASE("a device that is unplugged and plugged again is bound again", "[node][grpc]") {
  Served served;
  const std::string member = GENERATE("0000:41:00.0", "0000:01:00.0", "0000:01:00.1");
  const std::string unit = member.substr(0, 11) + "0";
  CAPTURE(member);
  served.node().Control("remove " + member);
  if (unit == member) {
    CHECK_THAT(UnitEvent(served.daemon(), "unit_unhealthy", unit), Catch::Contains("is gone"));
    REQUIRE(served.WaitUnit(unit, false));
  }
  served.node().Control("add " + member);
  CHECK(Eventually([&] { return served.node().DriverOf(member) == "vfio-pci"; }, kLong));
  CHECK(served.WaitUnit(unit, true));
}

TEST_CASE("SR-IOV that is switched on: the unit is unhealthy until it is off again",
          "[node][grpc]") {
  Served served;
  const std::string writes = served.node().Writes();
  served.node().Control("vfs 0000:44:00.0 2");
  CHECK_THAT(UnitEvent(served.daemon(), "unit_unhealthy", "0000:44:00.0"),
             Catch::Contains("pf-has-vfs: ") && Catch::Contains("2 virtual functions enabled"));
  REQUIRE(served.WaitUnit("0000:44:00.0", false));
  CHECK(served.kubelet().Resources().at(kGpu).devices.size() == 8);  // no VF is offered
  CHECK(served.node().Writes() == writes);

  served.node().Control("vfs 0000:44:00.0 0");
  CHECK(served.WaitUnit("0000:44:00.0", true));
}

Node::MachineText Machine(int audio_group, const char* boot_id) {
  return {absl::StrFormat(
      "name: grouped\n"
      "host: {iommu_active: true, iommu: intel}\n"
      "files: {proc/sys/kernel/random/boot_id: \"%s\\n\"}\n"
      "devices:\n"
      "- {address: \"0000:01:00.0\", vendor: \"10de\", device: \"1187\", class: \"030000\", "
      "driver: nvidia, iommu_group: 1}\n"
      "- {address: \"0000:01:00.1\", vendor: \"10de\", device: \"0e0a\", class: \"040300\", "
      "driver: snd_hda_intel, iommu_group: %d}\n",
      boot_id, audio_group)};
}

TEST_CASE("a group that is another one after a reboot is told with both lists", "[node][grpc]") {
  const ScratchDir dir;
  const std::string config = dir.Write("config.yaml", kConfig);
  const auto arguments = [&](const Node& node) {
    return std::vector<std::string>{
        "--root",   node.root(), "--state-dir",         dir.path() + "/state",
        "--config", config,      "--device-plugin-dir", node.kubelet_dir(),
        "--resync", "100ms"};
  };
  {
    const Node before(Machine(1, "first"));
    const Daemon daemon(arguments(before));
    REQUIRE_FALSE(daemon.WaitForLine({"event=group_ready"}, kLong).empty());
    CHECK(before.DriverOf("0000:01:00.1") == "vfio-pci");
    CHECK(daemon.CountLines({"group-changed"}) == 0);
  }
  const Node after(Machine(2, "second"));
  const Daemon daemon(arguments(after));
  CHECK_THAT(daemon.WaitForLine({"event=warning", "code=group-changed"}, kLong),
             Catch::Contains("was 1 {0000:01:00.0 0000:01:00.1} when the device was taken, and is "
                             "1 {0000:01:00.0} now"));
  REQUIRE_FALSE(daemon.WaitForLine({"event=group_ready"}, kLong).empty());
  CHECK(after.DriverOf("0000:01:00.0") == "vfio-pci");
  CHECK(after.DriverOf("0000:01:00.1") == "snd_hda_intel");  // it stands for itself now
}

}  // namespace
}  // namespace vfio_agent
