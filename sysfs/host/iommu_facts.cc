#include "sysfs/host/iommu_facts.h"

#include <array>
#include <utility>

#include "absl/strings/str_format.h"
#include "sysfs/host/host_firmware.h"
#include "sysfs/paths.h"
#include "sysfs/tree.h"

namespace vfio_agent {
namespace {

// How the IOMMU drivers name themselves below sys/class/iommu (drivers/iommu/*).
constexpr std::array<std::pair<std::string_view, IommuKind>, 3> kKinds = {{
    {"dmar", IommuKind::kIntel},
    {"ivhd", IommuKind::kAmd},
    {"smmu", IommuKind::kArmSmmu},  // "smmu3.0x…" and, before version 3, "smmu.0x…"
}};

IommuKind KindOf(const Tree& tree, const std::string& name) {
  for (const auto& [part, kind] : kKinds) {
    if (name.find(part) != std::string::npos) return kind;
  }
  // A virtio IOMMU is named after the PCI function that it is (virtio_bus_name()).
  const absl::StatusOr<PciAddress> address = PciAddress::Parse(name);
  if (!address.ok()) return IommuKind::kOther;
  const absl::StatusOr<std::string> vendor = tree.ReadText(DeviceDir(*address) + "/vendor");
  return vendor.ok() && *vendor == "0x1af4" ? IommuKind::kVirtio : IommuKind::kOther;
}

// Why it may be off, from the command line; never the verdict itself.
void ExplainOff(IommuFacts& facts) {
  const std::string line = " " + facts.command_line + " ";
  for (const char* off : {"intel_iommu=off", "amd_iommu=off", "iommu=off"}) {
    if (line.find(absl::StrFormat(" %s ", off)) != std::string::npos) {
      facts.evidence.push_back(absl::StrFormat("the kernel command line says %s", off));
      return;
    }
  }
  if (facts.is_guest) {
    facts.evidence.emplace_back(
        "this node is a virtual machine: it has an IOMMU only where its hypervisor gives it one");
    return;
  }
  if (line.find(" intel_iommu=on") == std::string::npos) {
    facts.evidence.push_back(
        "the kernel command line has no intel_iommu=on (AMD needs none); the firmware may have "
        "VT-d or AMD-Vi switched off");
  }
}

// False as well where the module is not loaded: then nobody has switched it on.
bool ReadSwitch(const Tree& tree, const char* path) {
  const absl::StatusOr<std::string> text = tree.ReadText(path);
  return text.ok() && (*text == "Y" || *text == "1");
}

void ReadParameters(const Tree& tree, IommuFacts& facts) {
  const absl::StatusOr<std::string> line = tree.ReadText(kCommandLine, size_t{64} * 1024);
  if (line.ok()) facts.command_line = *line;
  facts.acs_override_parameter = facts.command_line.find("pcie_acs_override=") != std::string::npos;
  facts.unsafe_noiommu = ReadSwitch(tree, kNoiommuParameter);
  facts.unsafe_interrupts = ReadSwitch(tree, kUnsafeInterruptsParameter);
  facts.denylist_disabled = ReadSwitch(tree, kDenylistParameter);
}

}  // namespace

IommuFacts ReadIommuFacts(const Tree& tree, int grouped_devices, int noiommu_groups) {
  IommuFacts facts;
  ReadParameters(tree, facts);
  const absl::StatusOr<std::vector<std::string>> units = tree.List(kIommuClassDir);
  if (units.ok() && !units->empty()) {
    facts.kind = KindOf(tree, units->front());
    facts.evidence.push_back(absl::StrFormat("/%s has %s", kIommuClassDir, units->front()));
  }
  if (grouped_devices > 0) {
    facts.state = IommuState::kOn;
    if (facts.kind == IommuKind::kNone) facts.kind = IommuKind::kOther;
    facts.evidence.push_back("PCI functions have a group");
    if (facts.unsafe_interrupts) {
      facts.evidence.push_back(
          "vfio_iommu_type1 has allow_unsafe_interrupts=Y: a guest can send the host interrupts");
    }
    return facts;
  }
  if (noiommu_groups > 0) {
    facts.state = IommuState::kNoIommu;
    facts.evidence.push_back(absl::StrFormat("%d groups are of noiommu mode", noiommu_groups));
    return facts;
  }
  facts.evidence.push_back("no PCI function has a group");
  facts.is_guest = IsGuest(tree);
  // Both are there, be they empty, wherever the kernel has IOMMU support at all: what lacks both is
  // a recording that says nothing of groups, or a kernel that has no support.
  if (!tree.Exists(kGroupsDir) && !tree.Exists(kIommuClassDir)) {
    facts.state = IommuState::kUnknown;
    facts.evidence.push_back(
        absl::StrFormat("neither /%s nor /%s is there: a recording that lacks them, or a kernel "
                        "without IOMMU support",
                        kGroupsDir, kIommuClassDir));
    return facts;
  }
  // An IOMMU that serves no PCI function (Arm boards, a driver that failed) helps nobody; only
  // where the links themselves cannot be seen is the answer open.
  facts.state = tree.Exists(kDevicesDir) ? IommuState::kOff : IommuState::kUnknown;
  ExplainOff(facts);
  return facts;
}

}  // namespace vfio_agent
