#include "agent/doctor/looked_for.h"

#include <array>

namespace vfio_agent {
namespace {

constexpr std::array kModules = std::to_array<std::string_view>(
    {"vfio", "vfio_pci", "vfio_iommu_type1", "iommufd", "nouveau", "nvidia", "nvidia_drm"});

// By the start of what the kernel keeps of a name, 15 characters.
constexpr std::array kCommands = std::to_array<std::string_view>(
    {"kubelet", "kubelite", "k3s", "rke2", "hyperkube", "containerd", "crio", "nvidia-persiste",
     "nv-fabricmanage", "nv-hostengine", "dcgm-exporter", "nvidia-device-p", "nvidia-kubevirt",
     "vfio-manage", "nvidia-vgpu-mgr", "virt-handler", "virtqemud", "libvirtd"});

}  // namespace

std::span<const std::string_view> DoctorModules() { return kModules; }
std::span<const std::string_view> DoctorCommands() { return kCommands; }

}  // namespace vfio_agent
