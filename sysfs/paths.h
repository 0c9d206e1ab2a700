// Every kernel path that the agent reads or writes, one builder each. All relative to the root.
#pragma once

#include <string>

#include "absl/strings/str_format.h"
#include "sysfs/device/pci_address.h"

namespace vfio_agent {

inline constexpr char kDevicesDir[] = "sys/bus/pci/devices";
inline constexpr char kDriversDir[] = "sys/bus/pci/drivers";
inline constexpr char kDriversProbe[] = "sys/bus/pci/drivers_probe";
inline constexpr char kGroupsDir[] = "sys/kernel/iommu_groups";
inline constexpr char kIommuClassDir[] = "sys/class/iommu";
inline constexpr char kCommandLine[] = "proc/cmdline";
inline constexpr char kBootId[] = "proc/sys/kernel/random/boot_id";
inline constexpr char kKernelRelease[] = "proc/sys/kernel/osrelease";
inline constexpr char kNoiommuParameter[] = "sys/module/vfio/parameters/enable_unsafe_noiommu_mode";
inline constexpr char kDenylistParameter[] = "sys/module/vfio_pci/parameters/disable_denylist";
inline constexpr char kUnsafeInterruptsParameter[] =
    "sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts";
inline constexpr char kVfioNodesDir[] = "dev/vfio";
inline constexpr char kMdevParentsDir[] = "sys/class/mdev_bus";
inline constexpr char kMdevDevicesDir[] = "sys/bus/mdev/devices";
inline constexpr char kIommuNode[] = "dev/iommu";
inline constexpr char kEgmClassDir[] = "sys/class/egm";
inline constexpr char kBlockClassDir[] = "sys/class/block";
inline constexpr char kConsolesDir[] = "sys/class/vtconsole";
inline constexpr char kBtrfsDir[] = "sys/fs/btrfs";
inline constexpr char kZfsPoolsDir[] = "proc/spl/kstat/zfs";
inline constexpr char kIomem[] = "proc/iomem";
inline constexpr char kSwaps[] = "proc/swaps";
// Of process 1, for a container has mounts and a network of its own.
inline constexpr char kHostMounts[] = "proc/1/mountinfo";
inline constexpr char kHostRoutes[] = "proc/1/net/route";
inline constexpr char kHostRoutes6[] = "proc/1/net/ipv6_route";
inline constexpr char kHostAddresses6[] = "proc/1/net/if_inet6";

inline std::string DeviceDir(const PciAddress& address) {
  return absl::StrFormat("%s/%s", kDevicesDir, address.ToString());
}
inline std::string OverridePath(const PciAddress& address) {
  return DeviceDir(address) + "/driver_override";
}
inline std::string D3coldPath(const PciAddress& address) {
  return DeviceDir(address) + "/d3cold_allowed";
}
inline std::string NumVfsPath(const PciAddress& address) {
  return DeviceDir(address) + "/sriov_numvfs";
}
inline std::string VfsAutoprobePath(const PciAddress& address) {
  return DeviceDir(address) + "/sriov_drivers_autoprobe";
}
inline std::string DriverLink(const PciAddress& address) { return DeviceDir(address) + "/driver"; }
inline std::string GroupLink(const PciAddress& address) {
  return DeviceDir(address) + "/iommu_group";
}
inline std::string UnbindPath(const std::string& driver) {
  return absl::StrFormat("%s/%s/unbind", kDriversDir, driver);
}
inline std::string GroupNode(int group) { return absl::StrFormat("dev/vfio/%d", group); }
inline std::string VfioClassFile(const std::string& node, const char* name) {
  return absl::StrFormat("sys/class/vfio/%s/%s", node, name);
}
inline std::string NvidiaInformation(const PciAddress& address) {
  return absl::StrFormat("proc/driver/nvidia/gpus/%s/information", address.ToString());
}
inline std::string GroupFile(int group, const char* name) {
  return absl::StrFormat("%s/%d/%s", kGroupsDir, group, name);
}
inline std::string MdevTypesDir(const PciAddress& parent) {
  return DeviceDir(parent) + "/mdev_supported_types";
}
inline std::string MdevCreatePath(const PciAddress& parent, const std::string& type) {
  return absl::StrFormat("%s/%s/create", MdevTypesDir(parent), type);
}
inline std::string MdevDir(const std::string& uuid) {
  return absl::StrFormat("%s/%s", kMdevDevicesDir, uuid);
}
inline std::string CurrentVgpuPath(const PciAddress& function) {
  return DeviceDir(function) + "/nvidia/current_vgpu_type";
}
inline std::string CreatableVgpusPath(const PciAddress& function) {
  return DeviceDir(function) + "/nvidia/creatable_vgpu_types";
}
inline std::string ModulesFile(const std::string& release, const char* name) {
  return absl::StrFormat("lib/modules/%s/%s", release, name);
}

}  // namespace vfio_agent
