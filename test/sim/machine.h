// Machine: what a simulated node is made of, as read from a machine file (YAML).
//
// Facts only, nothing that changes: the Kernel builds its state from one. README.md describes
// every key of the file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "test/sim/fault.h"

namespace vfio_agent::sim {

// What the machine file says about the ACS capability of one function. kUnknown also hides all
// of config space beyond its first 64 bytes: nobody can then claim that there is no ACS.
enum class AcsFact { kNone, kUnknown, kGiven };

// How much of config space answers, and how.
enum class ConfigKind { kWhole, kHeader, kOneByte, kAllOnes };

// One entry of `mdev_types`.
struct MachineMdevType {
  std::string name;
  std::string api = "vfio-pci";
  int instances = 0;  // at most, while no instance of another type is on the device
};

// One entry of `vgpu.types`.
struct MachineVgpuType {
  std::string name;
  int size = 1;  // of the card's `vgpu.memory`
};

struct MachineDevice {
  std::string address;
  uint16_t vendor = 0;
  uint16_t device = 0;
  uint16_t subsystem_vendor = 0;
  uint16_t subsystem_device = 0;
  uint32_t class_code = 0;
  uint8_t revision = 0;
  std::string driver;                          // empty: unbound at boot
  std::optional<std::string> driver_override;  // nullopt: the file does not say
  std::optional<int> group;
  int numa_node = -1;
  std::string parent;      // empty: on a root bus
  std::string sysfs_path;  // "sys/devices/..."; empty: from the parents
  bool is_bridge = false;
  bool pci_bridge = false;  // leads from PCI Express to conventional PCI
  int secondary = -1;
  int subordinate = -1;
  int config_size = 0;  // 0: 4096 for PCI Express, 256 for conventional PCI
  ConfigKind config = ConfigKind::kWhole;
  AcsFact acs = AcsFact::kNone;
  uint16_t acs_capability = 0;
  uint16_t acs_control = 0;
  int sriov_total_vfs = 0;
  int sriov_num_vfs = 0;
  int sriov_offset = 1;
  int sriov_stride = 1;
  uint16_t sriov_vf_device = 0;             // 0: the PF's own id
  std::string sriov_vf_driver;              // the driver that the VFs come up with
  std::string physfn;                       // a VF that the file lists itself
  std::optional<std::string> reset_method;  // nullopt: an older kernel, no such attribute
  std::string power_state = "D0";
  std::string d3cold_allowed = "1";
  std::string removable;  // "external" below a Thunderbolt port; empty: no such attribute
  std::optional<bool> boot_vga;
  uint64_t bar1_bytes = 0;
  bool present = true;                                // false: plugged in later, by ".control add"
  std::map<std::string, std::string> attributes;      // further files below the device directory
  std::map<std::string, MachineMdevType> mdev_types;  // by id, while the boot driver has it
  std::map<int, MachineVgpuType> vgpu_types;  // of its VFs, by id, while the boot driver has them
  int vgpu_memory = 0;
};

struct MachineGroup {
  std::string name;  // empty: no name file
  std::string type = "DMA";
  std::vector<std::string> reserved;
};

struct MachineProcess {
  int pid = 0;
  std::string comm;
  std::string cgroup = "0::/\n";
  std::vector<std::string> fds;  // targets of fd/3, fd/4, ...
};

struct MachineNumaNode {
  std::string cpulist;
  std::string distance;
};

// Which of the kernel's two ways to reach a device without its group exist.
enum class Cdevs {
  kNone,       // before 6.1: not even the vfio-dev directory
  kSysfsOnly,  // vfio-dev/vfioN without a node: built without VFIO_DEVICE_CDEV
  kFull,       // /dev/vfio/devices/vfioN as well
};

struct Machine {
  std::string name;
  std::string release = "6.1.0-44-amd64";
  std::string command_line;
  std::string iommu;  // "intel", "amd", "arm-smmu", "virtio", "none", "unknown"
  bool virtual_machine = false;
  std::string noiommu;              // "Y", "N", or empty where the kernel lacks the parameter
  std::string vfio_pci = "loaded";  // "loaded", "builtin", "installed" (loadable), "missing"
  Cdevs cdevs = Cdevs::kSysfsOnly;
  std::vector<std::string> drivers;         // loaded although no device is bound to them
  std::vector<std::string> module_aliases;  // whole lines of modules.alias
  std::vector<MachineDevice> devices;
  std::map<int, MachineGroup> groups;
  std::map<int, MachineNumaNode> numa_nodes;
  std::vector<MachineProcess> processes;
  std::vector<Fault> faults;
  std::map<std::string, std::string> files;  // anywhere below the root; writable
  std::map<std::string, std::string> links;
  std::vector<std::string> absent;  // paths taken out again at the end
};

// InvalidArgument with file, line and key where the text is not a machine.
absl::StatusOr<Machine> LoadMachine(const std::string& path);
absl::StatusOr<Machine> ParseMachine(const std::string& yaml, const std::string& name);

// A node of `functions` functions for benchmarks: GPU and audio function in one group below a
// switch port each; `bound`: all of them already on vfio-pci.
Machine MakeSyntheticMachine(int functions, bool bound);

}  // namespace vfio_agent::sim
