// IommuFacts: is an IOMMU translating on this node, and of which kind.
#pragma once

#include <string>
#include <vector>

namespace vfio_agent {

class Tree;

enum class IommuState { kOn, kOff, kNoIommu, kUnknown };
enum class IommuKind { kIntel, kAmd, kArmSmmu, kVirtio, kOther, kNone };

struct IommuFacts {
  IommuState state = IommuState::kUnknown;
  IommuKind kind = IommuKind::kNone;
  std::string command_line;             // proc/cmdline; empty where unreadable
  bool acs_override_parameter = false;  // pcie_acs_override= on the command line
  bool unsafe_noiommu = false;          // vfio's enable_unsafe_noiommu_mode is Y
  bool unsafe_interrupts = false;       // vfio_iommu_type1's allow_unsafe_interrupts is Y
  bool denylist_disabled = false;       // vfio_pci's disable_denylist is Y
  // A hypervisor runs this kernel, so that no firmware setting helps. Read only where none is on.
  bool is_guest = false;
  std::vector<std::string> evidence;  // what the verdict rests on, one sentence each
  bool operator==(const IommuFacts&) const = default;
};

// `grouped_devices`: how many PCI functions have an iommu_group link that is not of noiommu
// mode; `noiommu_groups`: how many groups are. Decided from these links and sys/class/iommu;
// the command line only explains. sys/firmware is never the judge: container runtimes mask it.
// Unknown where the tree has none of what a kernel with IOMMU support always has.
IommuFacts ReadIommuFacts(const Tree& tree, int grouped_devices, int noiommu_groups);

}  // namespace vfio_agent
