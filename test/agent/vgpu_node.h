// A simulated node with a card whose virtual functions take vGPU types: three of one, or one of
// another.
#pragma once

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "test/agent/node.h"

namespace vfio_agent {

inline constexpr absl::Duration kLong = absl::Seconds(60);
inline constexpr char kOneB[] = "nvidia.com/NVIDIA_L40S-1B";
inline constexpr char kCard[] = "0000:41:00.0";
inline constexpr char kFirst[] = "0000:41:00.4";
inline constexpr char kSecond[] = "0000:41:00.5";
inline constexpr char kThird[] = "0000:41:00.6";
inline constexpr char kMachine[] = R"(name: vgpu
host: {iommu_active: true, iommu: intel, release: 6.8.0-60-generic}
devices:
- address: "0000:41:00.0"
  vendor: "10de"
  device: "26b9"
  class: "030200"
  driver: nvidia
  iommu_group: 5
  numa_node: 1
  sriov_totalvfs: 4
  sriov_numvfs: 4
  sriov_offset: 4
  sriov_vf_driver: nvidia
  vgpu: {memory: 3, types: {1145: {name: NVIDIA L40S-1B, size: 1}, 1153: {name: NVIDIA L40S-3Q, size: 3}}}
numa_nodes:
  0: {cpulist: "0-3"}
  1: {cpulist: "4-7"}
)";
inline constexpr char kConfig[] = R"(mode: vm-vgpu
vgpu: [{parent: [{vendor: "10de"}], types: {NVIDIA L40S-1B: 2}}]
)";

struct VgpuNode {
  explicit VgpuNode(const std::string& more = "")
      : node(Node::MachineText{kMachine + more}), kubelet(node.StartKubelet()) {}

  void Start(const std::string& config_text = kConfig, std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--config", Config(config_text)});
    daemon = std::make_unique<Daemon>(node.DaemonArguments(std::move(more)));
  }
  void Kill() {
    daemon->Signal(SIGKILL);
    daemon->WaitForEnd(kLong);
  }
  std::string Config(const std::string& text = kConfig) const {
    return node.dir().Write("config.yaml", text);
  }
  bool Healthy(size_t count) const { return kubelet->WaitHealthy(kOneB, count, kLong); }
  std::string Path(const std::string& vf, const std::string& name) const {
    return node.root() + "/sys/bus/pci/devices/" + vf + "/" + name;
  }
  std::string Type(const std::string& vf) const {
    std::ifstream file(Path(vf, "nvidia/current_vgpu_type"));
    std::string text;
    std::getline(file, text);
    return text;
  }
  void SetByHand(const std::string& vf, const std::string& type) const {
    std::ofstream file(Path(vf, "nvidia/current_vgpu_type"));
    file << type;
    file.close();
    REQUIRE(Type(vf) == type);
  }
  std::string GroupOf(const std::string& vf) const {
    return std::filesystem::read_symlink(Path(vf, "iommu_group")).filename().string();
  }
  ProgramResult Bind(const std::string& config = kConfig) const {
    return node.Run({"bind", "--config", Config(config)});
  }
  ProgramResult Release(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), "release");
    more.insert(more.end(), {"--config", Config(), "--device-plugin-dir", node.kubelet_dir(),
                             "--kubelet-root-dir", node.kubelet_root()});
    return node.Run(std::move(more));
  }

  Node node;
  std::unique_ptr<FakeKubelet> kubelet;
  std::unique_ptr<Daemon> daemon;
};

}  // namespace vfio_agent
