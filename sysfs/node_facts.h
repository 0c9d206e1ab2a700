// NodeFacts: everything that the agent knows about a node at one moment, as plain values.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "sysfs/device/driver_files.h"
#include "sysfs/device/egm.h"
#include "sysfs/device/mdev.h"
#include "sysfs/device/pci_device.h"
#include "sysfs/device/vgpu.h"
#include "sysfs/host/iommu_facts.h"
#include "sysfs/host/module_facts.h"

namespace vfio_agent {

class ConfigReader;
class Tree;

// What the kernel says about one IOMMU group besides its members.
struct GroupFacts {
  bool noiommu = false;          // name file says "vfio-noiommu"
  bool direct_reserved = false;  // a reserved region of type "direct" (RMRR)
  // The group's own list of devices, whatever became of reading them; empty where the tree has
  // none.
  std::vector<PciAddress> listed;
  bool operator==(const GroupFacts&) const = default;
};

// The firmware's boot console holds part of a display adapter's memory (efifb, simpledrm, …), so
// that vfio-pci cannot map it, bound or not.
struct FrameBuffer {
  std::string text;    // completes "<device> …"
  std::string remedy;  // how to be rid of it
  bool operator==(const FrameBuffer&) const = default;
};

struct NodeFacts {
  std::vector<PciDevice> devices;  // sorted by address
  std::map<int, GroupFacts> groups;
  IommuFacts iommu;
  ModuleFacts modules;
  std::set<std::string> drivers;     // names below sys/bus/pci/drivers
  std::set<std::string> vfio_nodes;  // below dev/vfio: "vfio", "26", "noiommu-0", "devices/vfio0"
  bool iommu_node = false;           // dev/iommu
  std::map<PciAddress, FrameBuffer> frame_buffers;
  // Of NUMA nodes without processors that have devices: the nearest one that has some.
  std::map<int, int> nearest_cpu_nodes;
  std::vector<std::string> skipped;  // entries that are no devices, and why, one line each
  MdevFacts mdev;                    // its `skipped` are moved to the list above
  VgpuFacts vgpu;                    // the same
  std::vector<EgmRegion> egm;

  bool operator==(const NodeFacts&) const = default;
};

// Takes the whole picture once; it is never patched. FailedPrecondition where `tree` has no
// sys/bus/pci/devices at all. `modules` is taken over as it is: it changes only when modules are
// installed, so the caller reads it once. `ask` is called where there are mediated devices or
// vGPUs, once; where it is empty their drivers are waited for.
absl::StatusOr<NodeFacts> TakeNodeFacts(const Tree& tree, ConfigReader& config,
                                        const ModuleFacts& modules, const AskDrivers& ask = {});

// The device at `address`, or null.
const PciDevice* FindDevice(const NodeFacts& facts, const PciAddress& address);

}  // namespace vfio_agent
