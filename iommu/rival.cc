#include "iommu/rival.h"

#include <algorithm>
#include <array>

namespace vfio_agent {
namespace {

constexpr uint16_t kNvidia = 0x10de;
constexpr uint16_t kRebellions = 0x1eff;

constexpr std::string_view kUnbinds = "takes every card off its vfio driver when its pod ends";
constexpr std::string_view kServes = "serves the same cards to the kubelet";

// DaemonSets of the gpu-operator, of Rebellions' operator and of Harvester's pcidevices. NVIDIA's
// plugin for containers is none of them: it serves the cards that are left to the nvidia driver.
constexpr std::array kKinds = std::to_array<RivalKind>({
    {"nvidia-vfio-manager", "NVIDIA's vfio-manager", kUnbinds, kNvidia,
     "kubectl label node <node> --overwrite nvidia.com/gpu.deploy.vfio-manager=false"},
    {"nvidia-sandbox-device-plugin", "NVIDIA's sandbox device plugin", kServes, kNvidia,
     "kubectl label node <node> --overwrite nvidia.com/gpu.deploy.sandbox-device-plugin=false"},
    {"nvidia-kata-sandbox-device-plugin", "NVIDIA's sandbox device plugin for Kata", kServes,
     kNvidia,
     "kubectl label node <node> --overwrite "
     "nvidia.com/gpu.deploy.kata-sandbox-device-plugin=false"},
    {"nvidia-kubevirt-gpu-dp", "NVIDIA's KubeVirt device plugin", kServes, kNvidia,
     "delete its DaemonSet, nvidia-kubevirt-gpu-dp-daemonset, or keep it off this node"},
    {"rbln-vfio-manager", "Rebellions' vfio-manager", kUnbinds, kRebellions,
     "switch the vfio-manager off in the RBLNClusterPolicy, or keep it off this node"},
    {"rbln-sandbox-device-plugin", "Rebellions' sandbox device plugin", kServes, kRebellions,
     "switch the sandbox device plugin off in the RBLNClusterPolicy, or keep it off this node"},
    {"pcidevices-controller", "Harvester's PCI devices controller",
     "takes every device without a claim of its own off vfio-pci when it starts", 0,
     "disable the add-on pcidevices-controller in Harvester"},
});

}  // namespace

const RivalKind* FindRivalKind(std::string_view pod) {
  const RivalKind* found = nullptr;
  for (const RivalKind& kind : kKinds) {
    if (pod.find(kind.in_name) == std::string_view::npos) continue;
    if (found == nullptr || kind.in_name.size() > found->in_name.size()) found = &kind;
  }
  return found;
}

bool Manages(const RivalKind& kind, const PciDevice& device) {
  return kind.vendor == 0 || kind.vendor == device.vendor;
}

}  // namespace vfio_agent
