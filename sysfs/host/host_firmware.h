// FirmwareFacts: what the processor and the firmware say about virtualization and an IOMMU.
#pragma once

#include <string>
#include <vector>

#include "sysfs/fact.h"

namespace vfio_agent {

class Tree;

enum class CpuMaker { kIntel, kAmd, kArm, kOther };

struct FirmwareFacts {
  CpuMaker maker = CpuMaker::kOther;
  std::string flag;  // "vmx" or "svm", the first that the processor has
  // That flag. Absent where processors of this kind have none (Arm); unknown without a cpuinfo.
  Fact<bool> virtualization;
  bool is_guest = false;  // the processor says that a hypervisor runs this kernel
  bool kvm_node = false;  // dev/kvm
  // ACPI's tables that tell of an IOMMU: "DMAR", "IVRS", "IORT", "VIOT"; may be none. Absent where
  // the firmware has no ACPI; unknown where sys/firmware shows nothing: container runtimes mask it.
  Fact<std::vector<std::string>> iommu_tables;
  std::vector<std::string> iommu_units;  // below sys/class/iommu
  bool operator==(const FirmwareFacts&) const = default;
};

FirmwareFacts ReadFirmwareFacts(const Tree& tree);
// FirmwareFacts::is_guest alone.
bool IsGuest(const Tree& tree);

}  // namespace vfio_agent
