// Every kernel path that the agent reads or writes, one builder each. All relative to the root.
#pragma once

#include <string>

#include "absl/strings/str_format.h"
#include "sysfs/pci_address.h"

namespace vfio_agent {

inline constexpr char kDevicesDir[] = "sys/bus/pci/devices";
inline constexpr char kDriversDir[] = "sys/bus/pci/drivers";
inline constexpr char kDriversProbe[] = "sys/bus/pci/drivers_probe";
inline constexpr char kGroupsDir[] = "sys/kernel/iommu_groups";
inline constexpr char kIommuClassDir[] = "sys/class/iommu";
inline constexpr char kCommandLine[] = "proc/cmdline";
inline constexpr char kKernelRelease[] = "proc/sys/kernel/osrelease";
inline constexpr char kNoiommuParameter[] = "sys/module/vfio/parameters/enable_unsafe_noiommu_mode";
inline constexpr char kVfioNodesDir[] = "dev/vfio";

inline std::string DeviceDir(const PciAddress& address) {
  return absl::StrFormat("%s/%s", kDevicesDir, address.ToString());
}
inline std::string OverridePath(const PciAddress& address) {
  return DeviceDir(address) + "/driver_override";
}
inline std::string DriverLink(const PciAddress& address) { return DeviceDir(address) + "/driver"; }
inline std::string GroupLink(const PciAddress& address) {
  return DeviceDir(address) + "/iommu_group";
}
inline std::string UnbindPath(const std::string& driver) {
  return absl::StrFormat("%s/%s/unbind", kDriversDir, driver);
}
inline std::string GroupNode(int group) { return absl::StrFormat("dev/vfio/%d", group); }
inline std::string GroupFile(int group, const char* name) {
  return absl::StrFormat("%s/%d/%s", kGroupsDir, group, name);
}
inline std::string ModulesFile(const std::string& release, const char* name) {
  return absl::StrFormat("lib/modules/%s/%s", release, name);
}

}  // namespace vfio_agent
