// Mediated devices on a simulated node: made, offered, given, removed.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "iommu/mdev/mdev.h"
#include "sysfs/fd.h"
#include "test/agent/node.h"
#include "test/kubevirt/launcher.h"

namespace vfio_agent {
namespace {

constexpr absl::Duration kLong = absl::Seconds(60);
constexpr char kQ1[] = "nvidia.com/GRID_T4-1Q";
constexpr char kT4[] = "0000:3b:00.0";
constexpr char kForeign[] = "83b8f4f2-509f-382f-3c1e-e6bfe0fa1001";
constexpr char kMachine[] = R"(name: vgpu
host: {iommu_active: true, iommu: intel}
devices:
- address: "0000:3b:00.0"
  vendor: "10de"
  device: "1eb8"
  class: "030200"
  driver: nvidia
  iommu_group: 5
  numa_node: 1
  mdev_types:
    nvidia-222: {name: GRID T4-1Q, instances: 4}
    nvidia-225: {name: GRID T4-4Q, instances: 1}
numa_nodes:
  0: {cpulist: "0-3"}
  1: {cpulist: "4-7"}
)";
constexpr char kConfig[] = R"(mode: vm-vgpu
mdev: [{parent: [{vendor: "10de"}], types: {GRID T4-1Q: 2}}]
)";

std::string Ours(int index) { return MdevUuid(*PciAddress::Parse(kT4), "nvidia-222", index); }

struct VgpuNode {
  VgpuNode() : kubelet(node.StartKubelet()) {}

  void Start(const std::string& config_text = kConfig, std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--config", Config(config_text)});
    daemon = std::make_unique<Daemon>(node.DaemonArguments(std::move(more)));
  }
  std::string Config(const std::string& text = kConfig) const {
    return node.dir().Write("config.yaml", text);
  }
  bool Healthy(size_t count) const { return kubelet->WaitHealthy(kQ1, count, kLong); }
  std::string Path(const std::string& uuid) const {
    return node.root() + "/sys/bus/mdev/devices/" + uuid;
  }
  bool Has(const std::string& uuid) const { return std::filesystem::exists(Path(uuid)); }
  void Write(const std::string& path, const std::string& text) const {
    INFO(path);
    const Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    REQUIRE(::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  void CreateByHand(const std::string& type = "nvidia-222") const {
    Write(node.root() + "/sys/bus/pci/devices/" + kT4 + "/mdev_supported_types/" + type + "/create",
          kForeign);
  }
  std::string GroupOf(const std::string& uuid) const {
    return std::filesystem::read_symlink(Path(uuid) + "/iommu_group").filename().string();
  }
  ProgramResult Release(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), "release");
    more.insert(more.end(), {"--config", Config(), "--device-plugin-dir", node.kubelet_dir(),
                             "--kubelet-root-dir", node.kubelet_root()});
    return node.Run(std::move(more));
  }

  Node node{Node::MachineText{kMachine}};
  std::unique_ptr<FakeKubelet> kubelet;
  std::unique_ptr<Daemon> daemon;
};

TEST_CASE("VGPU: instances are made, offered by type, and given with only their own group",
          "[node][grpc]") {
  VgpuNode vgpu;
  vgpu.Start();
  REQUIRE(vgpu.Healthy(2));
  CHECK(vgpu.node.DriverOf(kT4) == "nvidia");
  CHECK(vgpu.kubelet->Resources().at(kQ1).devices.at(Ours(0)).numa == std::vector<int64_t>{1});
  const auto answer = vgpu.kubelet->Allocate(kQ1, {Ours(1), Ours(0)});
  INFO(answer.status());
  REQUIRE(answer.ok());
  const kubevirt::Variables variables(answer->envs().begin(), answer->envs().end());
  CHECK(variables ==
        kubevirt::Variables{{"MDEV_PCI_RESOURCE_NVIDIA_COM_GRID_T4-1Q", Ours(0) + "," + Ours(1)}});
  const auto guest = kubevirt::StartMachine(kubevirt::MachineWith(kQ1, 2), variables);
  INFO(guest.status());
  CHECK(guest.ok());
  std::vector<std::string> nodes;
  for (const auto& device : answer->devices()) nodes.push_back(device.host_path());
  CHECK(nodes == std::vector<std::string>{"/dev/vfio/vfio", "/dev/vfio/" + vgpu.GroupOf(Ours(0)),
                                          "/dev/vfio/" + vgpu.GroupOf(Ours(1))});
  CHECK_FALSE(
      vgpu.daemon->WaitForLine({"event=bind_done", "group=5", "mdevs=" + Ours(0)}, kLong).empty());
}

TEST_CASE("VGPU: an instance that goes is made again under the same name, and so after a kill",
          "[node][grpc]") {
  VgpuNode vgpu;
  vgpu.Start();
  REQUIRE(vgpu.Healthy(2));
  vgpu.daemon->Signal(SIGKILL);
  vgpu.daemon->WaitForEnd(kLong);
  vgpu.Write(vgpu.Path(Ours(0)) + "/remove", "1");
  REQUIRE_FALSE(vgpu.Has(Ours(0)));
  vgpu.Start();
  REQUIRE(vgpu.Healthy(2));
  CHECK(vgpu.Has(Ours(0)));
  CHECK(vgpu.Has(Ours(1)));
  CHECK_FALSE(vgpu.Has(Ours(2)));
}

TEST_CASE("VGPU: an agent that is killed while it writes is followed by one that finishes",
          "[node][grpc]") {
  VgpuNode vgpu;
  vgpu.node.Control("fault {device: '0000:3b:00.0', op: create, block: forever}");
  vgpu.Start();
  REQUIRE_FALSE(vgpu.daemon->WaitForLine({"event=bind_started", "group=5"}, kLong).empty());
  vgpu.daemon->Signal(SIGKILL);
  vgpu.daemon->WaitForEnd(kLong);
  vgpu.node.Control("clear-faults");
  vgpu.node.Control("release-blocked 0000:3b:00.0");
  vgpu.Start();
  REQUIRE(vgpu.Healthy(2));
  CHECK_FALSE(vgpu.Has(Ours(2)));
}

TEST_CASE("VGPU: an instance made by hand is offered, counted, and left alone", "[node][grpc]") {
  VgpuNode vgpu;
  vgpu.CreateByHand();
  vgpu.Start(kConfig, {"--on-exit", "release"});
  REQUIRE(vgpu.Healthy(2));
  CHECK(vgpu.Has(Ours(0)));
  CHECK_FALSE(vgpu.Has(Ours(1)));
  CHECK(vgpu.kubelet->Allocate(kQ1, {kForeign}).ok());
  vgpu.kubelet->SetPod("team", "vm", "compute", kQ1, {kForeign});
  vgpu.daemon->Signal(SIGTERM);
  vgpu.daemon->WaitForEnd(kLong);
  CHECK(vgpu.Has(kForeign));
  CHECK_FALSE(vgpu.Has(Ours(0)));
}

TEST_CASE("VGPU: what a pod or a process has is not removed", "[node][grpc]") {
  VgpuNode vgpu;
  REQUIRE(vgpu.node.Run({"bind", "--config", vgpu.Config()}).exit_code == 0);
  REQUIRE(vgpu.Has(Ours(1)));
  vgpu.kubelet->SetPod("team", "vm", "compute", kQ1, {Ours(0)});
  vgpu.node.Control("hold " + vgpu.GroupOf(Ours(1)) + " 4242 qemu-kvm");
  const ProgramResult refused = vgpu.Release();
  CHECK(refused.exit_code == 3);
  CHECK_THAT(refused.out, Catch::Contains("in use by pod team/vm (container compute)") &&
                              Catch::Contains("in use by pid 4242 (qemu-kvm)"));
  CHECK(vgpu.Has(Ours(0)));
  CHECK(vgpu.Has(Ours(1)));
  REQUIRE(vgpu.kubelet->RemovePod("team", "vm"));
  CHECK(vgpu.Release({kT4}).exit_code == 3);
  CHECK_FALSE(vgpu.Has(Ours(0)));
  vgpu.node.Control("free " + vgpu.GroupOf(Ours(1)));
  const ProgramResult released = vgpu.Release();
  CHECK(released.exit_code == 0);
  CHECK_THAT(released.out, Catch::Contains("released: " + Ours(1)));
  CHECK_FALSE(vgpu.Has(Ours(1)));
}

TEST_CASE("VGPU: no machine is shown with a parent of mediated devices as a card of its own",
          "[node]") {
  const VgpuNode vgpu;
  const ProgramResult guest =
      vgpu.node.Run({"topology", "--guest", "libvirt", "--config", vgpu.Config()});
  CHECK_THAT(guest.out, !Catch::Contains("hostdev"));
  CHECK_THAT(guest.err, Catch::Contains("the configuration selects nothing here"));
  CHECK_THAT(vgpu.node.Run({"topology", "--guest", "libvirt", kT4, "--config", vgpu.Config()}).out,
             Catch::Contains("bound to no vfio driver"));
}

TEST_CASE("VGPU: an unhealthy instance is not given, nor one that became another's type",
          "[node][grpc]") {
  VgpuNode vgpu;
  vgpu.CreateByHand("nvidia-225");
  // Nothing of a second type fits beside the first: said, with what is wrong.
  vgpu.Start();
  CHECK_FALSE(
      vgpu.daemon->WaitForLine({"event=warning", "2 more of type GRID T4-1Q (nvidia-222)"}, kLong)
          .empty());
  vgpu.Write(vgpu.Path(kForeign) + "/remove", "1");
  REQUIRE(vgpu.Healthy(2));
  vgpu.node.Control("hold " + vgpu.GroupOf(Ours(0)) + " 4242 qemu-kvm");
  REQUIRE(vgpu.Healthy(1));
  CHECK_FALSE(vgpu.kubelet->Allocate(kQ1, {Ours(0)}).ok());
}

TEST_CASE("VGPU: a kernel that has no room after all is told with the command", "[node][grpc]") {
  VgpuNode vgpu;
  vgpu.node.Control("fault {device: '0000:3b:00.0', op: create, errno: ENOSPC}");
  const ProgramResult failed = vgpu.node.Run({"bind", "--config", vgpu.Config()});
  CHECK(failed.exit_code == 1);
  CHECK_THAT(failed.out, Catch::Contains("probe-refused") &&
                             Catch::Contains("step 1 of 2, `echo " + Ours(0) + " > /sys/") &&
                             Catch::Contains("No space left"));
}

TEST_CASE("VGPU: plan, list and kubevirt say what is made, for whom", "[node][grpc]") {
  VgpuNode vgpu;
  const std::string config = vgpu.Config();
  const ProgramResult plan = vgpu.node.Run({"plan", "--exit-code", "--config", config});
  CHECK(plan.exit_code == 4);
  CHECK_THAT(plan.out, Catch::Contains("# group 5: bind nvidia.com/GRID_T4-1Q") &&
                           Catch::Contains("echo " + Ours(1) + " > /sys/bus/pci/devices/0000:3b"));
  const auto before = vgpu.node.RunJson({"kubevirt", "--config", config});
  REQUIRE(vgpu.node.Run({"bind", "--config", config}).exit_code == 0);
  const auto after = vgpu.node.RunJson({"kubevirt", kQ1, "--config", config});
  CHECK(before["permitted_host_devices"] == after["permitted_host_devices"]);
  CHECK(after["permitted_host_devices"]["mediatedDevices"][0] ==
        nlohmann::json({{"mdevNameSelector", "GRID T4-1Q"},
                        {"resourceName", kQ1},
                        {"externalResourceProvider", true}}));
  CHECK(after["permitted_host_devices"]["pciHostDevices"].empty());
  CHECK(after["resources"][0]["units"] == 2);
  const ProgramResult text = vgpu.node.Run({"kubevirt", "--config", config});
  CHECK_THAT(text.out, Catch::Contains("mediatedDevices:\n        - mdevNameSelector: "
                                       "\"GRID T4-1Q\"\n          resourceName: " +
                                       std::string(kQ1)) &&
                           !Catch::Contains("pciHostDevices"));
  const ProgramResult list = vgpu.node.Run({"list", "resources", "--config", config});
  CHECK_THAT(list.out, Catch::Contains(Ours(0)) && Catch::Contains("ready"));
  CHECK(vgpu.node.Run({"explain", kT4, "--config", config}).exit_code == 0);
}

}  // namespace
}  // namespace vfio_agent
