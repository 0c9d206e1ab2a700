#include "iommu/tenancy/rival.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"

namespace vfio_agent {
namespace {

constexpr uint16_t kNvidia = 0x10de;
constexpr uint16_t kRebellions = 0x1eff;
constexpr uint32_t kNetwork = 0x02;

constexpr std::string_view kUnbinds = "takes every card off its vfio driver when its pod ends";
constexpr std::string_view kServes = "serves the same cards to the kubelet";

// DaemonSets of the gpu-operator, of NVIDIA's DRA driver, of Rebellions' operator, of Harvester's
// pcidevices, of the SR-IOV network operator and of the DRA driver of its makers. NVIDIA's plugin
// for containers is none of them: it serves the cards that are left to the nvidia driver.
constexpr std::array kKinds = std::to_array<RivalKind>({
    {.set = "nvidia-vfio-manager",
     .what = "NVIDIA's vfio-manager",
     .does = kUnbinds,
     .vendor = kNvidia,
     .remedy = "kubectl label node <node> --overwrite nvidia.com/gpu.deploy.vfio-manager=false"},
    {.set = "nvidia-sandbox-device-plugin-daemonset",
     .what = "NVIDIA's sandbox device plugin",
     .does = kServes,
     .vendor = kNvidia,
     .remedy =
         "kubectl label node <node> --overwrite nvidia.com/gpu.deploy.sandbox-device-plugin=false"},
    {.set = "nvidia-kata-sandbox-device-plugin-daemonset",
     .what = "NVIDIA's sandbox device plugin for Kata",
     .does = kServes,
     .vendor = kNvidia,
     .remedy = "kubectl label node <node> --overwrite "
               "nvidia.com/gpu.deploy.kata-sandbox-device-plugin=false"},
    {.set = "nvidia-kubevirt-gpu-dp-daemonset",
     .what = "NVIDIA's KubeVirt device plugin",
     .does = kServes,
     .vendor = kNvidia,
     .remedy = "delete its DaemonSet, nvidia-kubevirt-gpu-dp-daemonset, or keep it off this node"},
    {.set = "nvidia-vgpu-device-manager",
     .what = "NVIDIA's vGPU device manager",
     .does = "deletes all vGPUs of a card when the node's label nvidia.com/vgpu.config changes",
     .vendor = kNvidia,
     .remedy =
         "kubectl label node <node> --overwrite nvidia.com/gpu.deploy.vgpu-device-manager=false",
     .vgpus_only = true},
    {.set = "nvidia-dra-driver-gpu-kubelet-plugin",
     .what = "NVIDIA's DRA driver",
     .does = "binds cards to vfio-pci for claims, unless it serves containers alone",
     .vendor = kNvidia,
     .remedy = "keep its kubelet plugin off this node, if it serves machines as well",
     .prefixed = true,
     .warns_only = true},
    {.set = "rbln-vfio-manager",
     .what = "Rebellions' vfio-manager",
     .does = kUnbinds,
     .vendor = kRebellions,
     .remedy = "switch the vfio-manager off in the RBLNClusterPolicy, or keep it off this node"},
    {.set = "rbln-sandbox-device-plugin",
     .what = "Rebellions' sandbox device plugin",
     .does = kServes,
     .vendor = kRebellions,
     .remedy =
         "switch the sandbox device plugin off in the RBLNClusterPolicy, or keep it off this node"},
    {.set = "pcidevices-controller",
     .what = "Harvester's PCI devices controller",
     .does = "takes every device without a claim of its own off vfio-pci when it starts",
     .remedy = "disable the add-on pcidevices-controller in Harvester",
     .prefixed = true},
    // These two touch nothing but what a policy of theirs names; kForAdapters has them, too.
    {.set = "sriov-network-config-daemon",
     .what = "the SR-IOV network operator",
     .does =
         "makes and binds virtual functions of the adapters that a SriovNetworkNodePolicy names",
     .remedy = "leave the adapters of this agent out of every SriovNetworkNodePolicy of the node",
     .warns_only = true},
    {.set = "dra-driver-sriov-kubeletplugin",
     .what = "the SR-IOV DRA driver",
     .does = "binds virtual functions that a SriovResourcePolicy names to vfio-pci for claims",
     .remedy = "leave the adapters of this agent out of every SriovResourcePolicy of the node",
     .prefixed = true,
     .warns_only = true},
});

// Of those of no vendor, which have to do with network adapters alone.
constexpr std::array<std::string_view, 2> kForAdapters = {"sriov-network-config-daemon",
                                                          "dra-driver-sriov-kubeletplugin"};

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

bool Manages(const RivalKind& kind, const PciDevice& device, bool vgpus) {
  if (kind.vgpus_only && !vgpus) return false;
  const bool for_adapters = std::ranges::count(kForAdapters, kind.set) > 0;
  if (for_adapters && device.class_code >> 16 != kNetwork) return false;
  return kind.vendor == 0 || kind.vendor == device.vendor;
}

}  // namespace vfio_agent
