// SR-IOV vGPUs on a simulated node: set, offered, given, taken away.
#include <csignal>
#include <filesystem>

#include "test/agent/vgpu_node.h"
#include "test/kubevirt/launcher.h"

namespace vfio_agent {
namespace {

TEST_CASE("VGPU: types are set, offered by name, and given with their own nodes", "[node][grpc]") {
  VgpuNode vgpu;
  vgpu.Start();
  REQUIRE(vgpu.Healthy(2));
  CHECK(vgpu.Type(kFirst) == "1145");
  CHECK(vgpu.Type(kThird) == "0");
  CHECK(vgpu.node.DriverOf(kFirst) == "nvidia");
  CHECK(vgpu.node.DriverOf(kCard) == "nvidia");
  CHECK(vgpu.kubelet->Resources().at(kOneB).devices.at(kFirst).numa == std::vector<int64_t>{1});
  const auto answer = vgpu.kubelet->Allocate(kOneB, {kSecond, kFirst});
  INFO(answer.status());
  REQUIRE(answer.ok());
  const kubevirt::Variables variables(answer->envs().begin(), answer->envs().end());
  CHECK(variables == kubevirt::Variables{{"PCI_RESOURCE_NVIDIA_COM_NVIDIA_L40S-1B",
                                          std::string(kFirst) + "," + kSecond}});
  const auto guest = kubevirt::StartMachine(kubevirt::MachineWith(kOneB, 2), variables);
  INFO(guest.status());
  CHECK(guest.ok());
  std::vector<std::string> nodes;
  for (const auto& device : answer->devices()) nodes.push_back(device.host_path());
  CHECK(nodes == std::vector<std::string>{"/dev/vfio/vfio", "/dev/vfio/" + vgpu.GroupOf(kFirst),
                                          "/dev/vfio/" + vgpu.GroupOf(kSecond)});
}

TEST_CASE("VGPU: a type that goes is set again on the same function, and so after a kill",
          "[node][grpc]") {
  VgpuNode vgpu;
  vgpu.Start();
  REQUIRE(vgpu.Healthy(2));
  vgpu.Kill();
  vgpu.SetByHand(kSecond, "0");
  vgpu.Start();
  REQUIRE(vgpu.Healthy(2));
  CHECK(vgpu.Type(kSecond) == "1145");
  CHECK(vgpu.Type(kThird) == "0");
}

TEST_CASE("VGPU: an agent that is killed while it writes is followed by one that finishes",
          "[node][grpc]") {
  VgpuNode vgpu;
  vgpu.node.Control("fault {device: '0000:41:00.4', op: vgpu, block: forever}");
  vgpu.Start();
  REQUIRE_FALSE(
      vgpu.daemon->WaitForLine({"event=bind_started", "members=0000:41:00.4"}, kLong).empty());
  vgpu.Kill();
  vgpu.node.Control("clear-faults");
  vgpu.node.Control("release-blocked 0000:41:00.4");
  vgpu.Start();
  REQUIRE(vgpu.Healthy(2));
  CHECK(vgpu.Type(kThird) == "0");
  CHECK(vgpu.Release({kCard, kFirst}).exit_code == 3);  // the daemon serves it
}

TEST_CASE("VGPU: a type set by hand is offered, counted, and left alone", "[node][grpc]") {
  VgpuNode vgpu;
  vgpu.SetByHand(kThird, "1145");
  vgpu.Start(kConfig, {"--on-exit", "release"});
  REQUIRE(vgpu.Healthy(2));
  CHECK(vgpu.Type(kFirst) == "1145");
  CHECK(vgpu.Type(kSecond) == "0");
  CHECK(vgpu.kubelet->Allocate(kOneB, {kThird}).ok());
  vgpu.kubelet->SetPod("team", "vm", "compute", kOneB, {kThird});
  vgpu.daemon->Signal(SIGTERM);
  vgpu.daemon->WaitForEnd(kLong);
  CHECK(vgpu.Type(kThird) == "1145");
  CHECK(vgpu.Type(kFirst) == "0");
}

TEST_CASE("VGPU: what a pod or a process has keeps its type", "[node][grpc]") {
  VgpuNode vgpu;
  REQUIRE(vgpu.Bind().exit_code == 0);
  vgpu.kubelet->SetPod("team", "vm", "compute", kOneB, {kFirst});
  vgpu.node.Control("hold " + vgpu.GroupOf(kSecond) + " 4242 qemu-kvm");
  const ProgramResult refused = vgpu.Release();
  CHECK(refused.exit_code == 3);
  CHECK_THAT(refused.out, Catch::Contains("in use by pod team/vm (container compute)") &&
                              Catch::Contains("in use by pid 4242 (qemu-kvm)"));
  CHECK(vgpu.Type(kFirst) == "1145");
  REQUIRE(vgpu.kubelet->RemovePod("team", "vm"));
  CHECK(vgpu.Release().exit_code == 3);
  CHECK(vgpu.Type(kFirst) == "0");
  CHECK(vgpu.Type(kSecond) == "1145");
  vgpu.node.Control("free " + vgpu.GroupOf(kSecond));
  CHECK(vgpu.Release().exit_code == 0);
  CHECK(vgpu.Type(kSecond) == "0");
  CHECK(vgpu.node.DriverOf(kSecond) == "nvidia");
  CHECK_THAT(vgpu.Release().out, Catch::Contains("nothing to release"));
}

TEST_CASE("VGPU: a driver that refuses a type is told with the command", "[node]") {
  VgpuNode vgpu;
  SECTION("no memory after all") {
    vgpu.node.Control("fault {device: '0000:41:00.4', op: vgpu, errno: EPERM}");
  }
  SECTION("an error of its own") {
    vgpu.node.Control("fault {device: '0000:41:00.4', op: vgpu, errno: EIO}");
  }
  const ProgramResult failed = vgpu.Bind();
  CHECK(failed.exit_code == 1);
  CHECK_THAT(failed.out, Catch::Contains("probe-refused 0000:41:00.4") &&
                             Catch::Contains("step 1 of 2, `echo 1145 > /sys/") &&
                             Catch::Contains("remedy: the card has no room for it"));
  CHECK(vgpu.Type(kFirst) == "0");
  CHECK(vgpu.Type(kSecond) == "1145");
}

std::string Wanting(int count) {
  return "mode: vm-vgpu\nvgpu: [{parent: [{vendor: \"10de\"}], types: {NVIDIA L40S-1B: " +
         std::to_string(count) + "}}]\n";
}

TEST_CASE("VGPU: bind sets the lowest addresses, and what a card has no room for is a warning",
          "[node]") {
  const VgpuNode vgpu;
  const ProgramResult bound = vgpu.Bind(Wanting(4));
  INFO(bound.out << bound.err);
  CHECK(bound.exit_code == 0);
  for (const char* vf : {kFirst, kSecond, kThird}) CHECK(vgpu.Type(vf) == "1145");
  CHECK_THAT(bound.out, Catch::Contains("no vGPU type set, its card is full") &&
                            Catch::Contains("0000:41:00.7"));
  CHECK_THAT(bound.err, Catch::Contains("1 more of the vGPU type NVIDIA L40S-1B (1145)") &&
                            !Catch::Contains("event=bind_failed"));
  const ProgramResult again = vgpu.Bind(Wanting(4));
  CHECK(again.exit_code == 0);
  CHECK_THAT(again.out, !Catch::Contains("0000:41:00.7"));
  CHECK_THAT(again.err, Catch::Contains("1 more of the vGPU type NVIDIA L40S-1B (1145)"));
}

TEST_CASE("VGPU: bind and explain say which entry has a function that gets no type", "[node]") {
  const VgpuNode vgpu;
  const std::string config = vgpu.Config();
  const ProgramResult refused = vgpu.node.Run({"bind", kThird, "--config", config});
  CHECK(refused.exit_code == 3);
  CHECK_THAT(refused.out, Catch::Contains("vgpu[0].parent has the card of 0000:41:00.6") &&
                              Catch::Contains("narrow vgpu[0].parent"));
  CHECK_THAT(vgpu.node.Run({"explain", kThird, "--config", config}).out,
             Catch::Contains("it would not be given away: mdev[].parent or vgpu[].parent") &&
                 !Catch::Contains("it could be given away"));
}

TEST_CASE("VGPU: a vGPU whose node does not come is taken back", "[node]") {
  VgpuNode vgpu;
  vgpu.node.Control("fault {device: '0000:41:00.4', op: node}");
  const ProgramResult failed = vgpu.Bind();
  CHECK_THAT(failed.out, Catch::Contains("node-missing"));
  CHECK(vgpu.Type(kFirst) == "0");
  CHECK(vgpu.Type(kSecond) == "1145");
}

TEST_CASE("VGPU: a card has room for what it says, and the rest is a warning", "[node][grpc]") {
  VgpuNode vgpu;
  vgpu.SetByHand(kFirst, "1153");
  vgpu.Start();
  REQUIRE_FALSE(vgpu.daemon->WaitForLine({"0000:41:00.0 has room for: nothing"}, kLong).empty());
  vgpu.SetByHand(kFirst, "0");
  REQUIRE(vgpu.Healthy(2));
}

TEST_CASE("VGPU: after a reboot all types are gone, and set again on the same functions",
          "[node][grpc]") {
  const VgpuNode before;
  REQUIRE(before.Bind().exit_code == 0);
  VgpuNode after("files: {proc/sys/kernel/random/boot_id: \"next\\n\"}\n");
  std::filesystem::copy(before.node.state_dir(), after.node.state_dir(),
                        std::filesystem::copy_options::recursive);
  after.Start();
  REQUIRE(after.Healthy(2));
  CHECK(after.Type(kSecond) == "1145");
  CHECK(after.Type(kThird) == "0");
}

TEST_CASE("VGPU: a full card keeps its names over a restart of the agent", "[node][grpc]") {
  VgpuNode vgpu;
  const std::string three = Wanting(3);
  vgpu.Start(three);
  REQUIRE(vgpu.Healthy(3));
  vgpu.Kill();
  vgpu.Start(three);
  REQUIRE(vgpu.Healthy(3));
  CHECK(vgpu.kubelet->Allocate(kOneB, {kThird}).ok());
}

TEST_CASE("VGPU: plan, list, explain and kubevirt say what becomes of a function", "[node]") {
  VgpuNode vgpu;
  const std::string config = vgpu.Config();
  const ProgramResult plan = vgpu.node.Run({"plan", "--exit-code", "--config", config});
  CHECK(plan.exit_code == 4);
  CHECK_THAT(plan.out, Catch::Contains("#   keeps its driver; vGPU type 1145") &&
                           Catch::Contains("echo 1145 > /sys/bus/pci/devices/0000:41:00.4/nvidia"));
  const auto before = vgpu.node.RunJson({"kubevirt", "--config", config});
  REQUIRE(vgpu.Bind().exit_code == 0);
  CHECK(vgpu.node.Run({"plan", "--exit-code", "--config", config}).exit_code == 0);
  const auto after = vgpu.node.RunJson({"kubevirt", kOneB, "--config", config});
  CHECK(before["permitted_host_devices"] == after["permitted_host_devices"]);
  CHECK(after["permitted_host_devices"]["pciHostDevices"] ==
        nlohmann::json::array({{{"pciVendorSelector", "10DE:26B9"},
                                {"resourceName", kOneB},
                                {"externalResourceProvider", true}}}));
  const auto json = vgpu.node.RunJson({"plan", "--config", config});
  CHECK(json["resources"][0]["units"][1]["vgpu_type"] == "1145");
  const ProgramResult list = vgpu.node.Run({"list", "resources", "--config", config});
  CHECK_THAT(list.out, Catch::Contains(kFirst) && Catch::Contains("ready"));
  const ProgramResult explain = vgpu.node.Run({"explain", kFirst, "--config", config});
  CHECK(explain.exit_code == 0);
  CHECK_THAT(explain.out, Catch::Contains("a vGPU of type 1145, for guests as it is"));
  CHECK_THAT(vgpu.node.Run({"explain", kCard, "--config", config}).out,
             Catch::Contains("stays with the host"));
}

TEST_CASE("VGPU: a snapshot has the types, and plans the same", "[node]") {
  VgpuNode vgpu;
  REQUIRE(vgpu.Bind().exit_code == 0);
  const std::string file = vgpu.node.dir().path() + "/node.tar.gz";
  REQUIRE(vgpu.node.Run({"snapshot", file, "--config", vgpu.Config()}).exit_code == 0);
  const ScratchDir copy;
  REQUIRE(std::system(("tar -xzf " + file + " -C " + copy.path()).c_str()) == 0);
  const ProgramResult found = RunAgent({"list", "resources", "--root", copy.path(), "--state-dir",
                                        copy.path(), "--config", vgpu.Config()});
  CHECK_THAT(found.out, Catch::Contains(kOneB) && Catch::Contains(kSecond));
  const ProgramResult bound = RunAgent({"bind", "--root", copy.path(), "--state-dir", copy.path(),
                                        "--config", vgpu.Config(Wanting(3))});
  CHECK(bound.exit_code == 1);
  CHECK_THAT(bound.out, Catch::Contains("is written there, so nothing was written"));
  CHECK_THAT(bound.err, !Catch::Contains("is a copy"));
}

}  // namespace
}  // namespace vfio_agent
