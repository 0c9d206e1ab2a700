#include "iommu/rival.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"

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
    {"nvidia-sandbox-device-plugin-daemonset", "NVIDIA's sandbox device plugin", kServes, kNvidia,
     "kubectl label node <node> --overwrite nvidia.com/gpu.deploy.sandbox-device-plugin=false"},
    {"nvidia-kata-sandbox-device-plugin-daemonset", "NVIDIA's sandbox device plugin for Kata",
     kServes, kNvidia,
     "kubectl label node <node> --overwrite "
     "nvidia.com/gpu.deploy.kata-sandbox-device-plugin=false"},
    {"nvidia-kubevirt-gpu-dp-daemonset", "NVIDIA's KubeVirt device plugin", kServes, kNvidia,
     "delete its DaemonSet, nvidia-kubevirt-gpu-dp-daemonset, or keep it off this node"},
    {"rbln-vfio-manager", "Rebellions' vfio-manager", kUnbinds, kRebellions,
     "switch the vfio-manager off in the RBLNClusterPolicy, or keep it off this node"},
    {"rbln-sandbox-device-plugin", "Rebellions' sandbox device plugin", kServes, kRebellions,
     "switch the sandbox device plugin off in the RBLNClusterPolicy, or keep it off this node"},
    {.set = "pcidevices-controller",
     .what = "Harvester's PCI devices controller",
     .does = "takes every device without a claim of its own off vfio-pci when it starts",
     .remedy = "disable the add-on pcidevices-controller in Harvester",
     .prefixed = true},
});

// What Kubernetes puts behind a DaemonSet's name: "-x7k2p".
constexpr size_t kSuffix = 5;

// The name of the DaemonSet whose pod would be called so; empty where none's would.
std::string_view SetOf(std::string_view pod) {
  if (pod.size() <= kSuffix + 1) return "";
  const std::string_view suffix = pod.substr(pod.size() - kSuffix);
  const bool fits = std::ranges::all_of(suffix, [](char c) {
    return absl::ascii_islower(static_cast<unsigned char>(c)) ||
           absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
  pod.remove_suffix(kSuffix);
  if (!fits || !pod.ends_with('-')) return "";
  pod.remove_suffix(1);
  return pod;
}

bool IsCalled(std::string_view set, const RivalKind& kind) {
  if (set == kind.set) return true;
  if (!kind.prefixed || !set.ends_with(kind.set)) return false;
  set.remove_suffix(kind.set.size());
  return set.ends_with('-');
}

}  // namespace

const RivalKind* FindRivalKind(std::string_view pod) {
  const std::string_view set = SetOf(pod);
  const auto* const found =
      std::ranges::find_if(kKinds, [set](const RivalKind& kind) { return IsCalled(set, kind); });
  return found == kKinds.end() ? nullptr : found;
}

bool Manages(const RivalKind& kind, const PciDevice& device) {
  return kind.vendor == 0 || kind.vendor == device.vendor;
}

}  // namespace vfio_agent
