// Checks of the firmware and the kernel: is there virtualization, and an IOMMU that is on?
#include <algorithm>
#include <array>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "agent/doctor/checks.h"
#include "sysfs/proc_text.h"

namespace vfio_agent {
namespace {

constexpr char kSwitchOnVirtualization[] =
    "switch VT-x (Intel) or SVM (AMD) on in the firmware's setup";
constexpr char kNestedVirtualization[] =
    "this node is a virtual machine: give it nested virtualization where it is defined";
constexpr char kVirtualIommu[] =
    "this node is a virtual machine: give it a virtual IOMMU where it is defined (QEMU: -device "
    "intel-iommu,caching-mode=on)";

Findings Virtualization(const DoctorFacts& facts) {
  const FirmwareFacts& firmware = facts.firmware;
  // A copy need not have device nodes.
  const bool node = firmware.kvm_node || facts.view == View::kCopy;
  if (firmware.virtualization.unknown()) return {Unknown("/proc/cpuinfo cannot be read")};
  if (firmware.virtualization.is(false)) {
    return {Fail("the processor has neither vmx nor svm",
                 firmware.is_guest ? kNestedVirtualization : kSwitchOnVirtualization)};
  }
  if (!node) {
    return {Warn("there is no /dev/kvm",
                 "modprobe kvm_intel or kvm_amd; its reason is in `dmesg | grep -i kvm`")};
  }
  if (firmware.virtualization.absent()) {
    return {firmware.kvm_node ? Ok("/dev/kvm is there")
                              : Unknown("processors of this kind do not tell in /proc/cpuinfo")};
  }
  return {Ok(absl::StrFormat("the processor has %s%s", firmware.flag,
                             firmware.kvm_node ? ", /dev/kvm is there" : ""))};
}

// No IOMMU, and devices are served all the same because somebody wanted it so: nothing is broken.
Finding FailIommu(const DoctorFacts& facts, std::string read, std::string remedy, Code code) {
  if (!facts.picture || !ServesUnsafe(facts.picture->plan)) {
    return Fail(std::move(read), std::move(remedy), code);
  }
  return Warn("UNSAFE, served all the same as resources[].noiommu says: " + read, std::move(remedy),
              code);
}

Findings FirmwareIommu(const DoctorFacts& facts) {
  const FirmwareFacts& firmware = facts.firmware;
  if (!firmware.iommu_units.empty()) {
    return {Ok(absl::StrFormat(
        "/sys/class/iommu has %d unit%s, %s first", firmware.iommu_units.size(),
        firmware.iommu_units.size() == 1 ? "" : "s", firmware.iommu_units.front()))};
  }
  if (firmware.iommu_tables.known() && !firmware.iommu_tables.value().empty()) {
    return {Ok("the firmware describes one in its table " +
               absl::StrJoin(firmware.iommu_tables.value(), ", "))};
  }
  if (IommuOf(facts) == IommuState::kOn) return {Ok("PCI functions have groups")};
  if (firmware.iommu_tables.known()) {
    return {FailIommu(
        facts, "the firmware's ACPI tables describe no IOMMU (no DMAR, IVRS, IORT or VIOT)",
        firmware.is_guest ? kVirtualIommu
                          : "switch VT-d (Intel) or AMD-Vi/IOMMU (AMD) on in the firmware's setup",
        Code::kIommuOff)};
  }
  if (firmware.iommu_tables.absent()) return {Unknown("this firmware has no ACPI tables")};
  if (facts.view == View::kCopy) return {Unknown("the copy has no /sys/firmware")};
  return {Unknown("/sys/firmware shows nothing: a container runtime masks it",
                  "run it on the host, or look for DMAR or IVRS in /sys/firmware/acpi/tables")};
}

constexpr std::array kOffWords =
    std::to_array<std::string_view>({"intel_iommu=off", "amd_iommu=off", "iommu=off"});

// What passthrough turns on, by the start of the word.
constexpr std::array kToldWords = std::to_array<std::string_view>(
    {"intel_iommu=", "amd_iommu=", "iommu=", "iommu.", "arm-smmu", "vfio", "pcie_acs_override=",
     "pci=", "module_blacklist=", "modprobe.blacklist=", "hugepages", "default_hugepagesz="});

Findings CommandLine(const DoctorFacts& facts) {
  if (facts.command_line.empty()) return {Unknown("/proc/cmdline cannot be read")};
  std::vector<std::string> told;
  for (const std::string_view word : Fields(facts.command_line)) {
    if (std::ranges::count(kOffWords, word) != 0) {
      return {FailIommu(
          facts, absl::StrFormat("%s is on the kernel command line", word),
          absl::StrFormat("take %s off it (GRUB_CMDLINE_LINUX, update-grub) and boot", word),
          Code::kIommuOff)};
    }
    const auto begins = [word](std::string_view start) { return word.starts_with(start); };
    if (std::ranges::any_of(kToldWords, begins)) told.emplace_back(word);
  }
  const bool asked = facts.command_line.find("intel_iommu=on") != std::string::npos;
  const bool needed = facts.firmware.maker == CpuMaker::kIntel && !asked;
  // A recording that says nothing of groups, or no picture at all.
  if (needed && IommuOf(facts) == IommuState::kUnknown) {
    return {Unknown("it has no intel_iommu=on, and whether an IOMMU is on is not known here",
                    "if none is on: add intel_iommu=on iommu=pt to it (GRUB_CMDLINE_LINUX, "
                    "update-grub) and boot")};
  }
  if (needed && IommuOf(facts) != IommuState::kOn) {
    return {
        FailIommu(facts, "no intel_iommu=on is on the kernel command line, and no IOMMU is on",
                  "add intel_iommu=on iommu=pt to it (GRUB_CMDLINE_LINUX, update-grub) and boot",
                  Code::kIommuOff)};
  }
  return {Ok(told.empty() ? "it has no word about the IOMMU or vfio"
                          : "it has " + absl::StrJoin(told, " "))};
}

bool HasTable(const FirmwareFacts& firmware, std::string_view table) {
  return firmware.iommu_tables.known() &&
         std::ranges::count(firmware.iommu_tables.value(), table) != 0;
}

// Where the firmware describes one, it is the kernel that does not use it.
std::string SwitchIommuOn(const FirmwareFacts& firmware) {
  if (HasTable(firmware, "IVRS")) {
    return "the firmware has AMD-Vi on: boot without amd_iommu=off and iommu=off; `dmesg | grep -i "
           "-e amd-vi -e ivrs` says what the kernel makes of it";
  }
  if (HasTable(firmware, "DMAR")) {
    return "the firmware has VT-d on: boot with intel_iommu=on; `dmesg | grep -i dmar` says what "
           "the kernel makes of it";
  }
  if (firmware.is_guest) return kVirtualIommu;
  if (firmware.maker == CpuMaker::kAmd) {
    return "switch AMD-Vi (IOMMU) on in the firmware's setup, and boot without amd_iommu=off";
  }
  return std::string(DefaultRemedy(Code::kIommuOff));
}

// Without what is no matter of this processor: only Intel's wants a word on the command line.
std::string SpellEvidence(const DoctorFacts& facts) {
  std::vector<std::string> evidence = facts.picture->facts.iommu.evidence;
  if (facts.firmware.maker != CpuMaker::kIntel && facts.firmware.maker != CpuMaker::kOther) {
    std::erase_if(evidence, [](const std::string& sentence) {
      return sentence.find("no intel_iommu=on") != std::string::npos;
    });
  }
  return absl::StrJoin(evidence, "; ");
}

int GroupCount(const NodeFacts& facts) { return static_cast<int>(facts.groups.size()); }

// All that is given away is mediated devices, whose parents need no group.
bool DoesWithoutIommu(const Plan& plan) {
  const auto selected = [](const GroupPlan& group) {
    return group.verdict != Verdict::kUnselected;
  };
  return std::ranges::any_of(plan.groups, selected) &&
         std::ranges::all_of(plan.groups, [&](const GroupPlan& group) {
           return group.makes_mdevs || !selected(group);
         });
}

Findings Iommu(const DoctorFacts& facts) {
  if (!facts.picture) return {Unknown("PCI devices cannot be read: " + facts.picture_error)};
  const NodeFacts& node = facts.picture->facts;
  const std::string evidence = SpellEvidence(facts);
  switch (node.iommu.state) {
    case IommuState::kOn:
      return {Ok(absl::StrFormat("on (%s), %d groups", Name(node.iommu.kind), GroupCount(node)))};
    case IommuState::kOff:
      if (DoesWithoutIommu(facts.picture->plan)) {
        return {Ok("off, which mediated devices do without")};
      }
      return {Fail("off: " + evidence, SwitchIommuOn(facts.firmware), Code::kIommuOff)};
    case IommuState::kNoIommu:
      return {
          FailIommu(facts, evidence, std::string(DefaultRemedy(Code::kNoiommu)), Code::kNoiommu)};
    case IommuState::kUnknown:
      break;
  }
  return {Unknown(evidence)};
}

Findings IommuSwitches(const DoctorFacts& facts) {
  if (!facts.picture) return {Unknown("PCI devices cannot be read: " + facts.picture_error)};
  const IommuFacts& iommu = facts.picture->facts.iommu;
  Findings findings;
  if (iommu.acs_override_parameter) {
    findings.push_back(
        Warn("pcie_acs_override is on the kernel command line: groups may be finer "
             "than what the hardware keeps apart",
             std::string(DefaultRemedy(Code::kAcsOverride)), Code::kAcsOverride));
  }
  if (iommu.unsafe_interrupts) {
    findings.push_back(
        Warn("vfio_iommu_type1 has allow_unsafe_interrupts=Y: a guest can send the host interrupts",
             "take the option out of modprobe.d unless the machine has no interrupt remapping"));
  }
  if (iommu.unsafe_noiommu) {
    findings.push_back(Warn("vfio has enable_unsafe_noiommu_mode=Y",
                            std::string(DefaultRemedy(Code::kNoiommu)), Code::kNoiommu));
  }
  if (iommu.denylist_disabled) {
    findings.push_back(
        Warn("vfio_pci has disable_denylist=Y: devices known to harm the host may "
             "be given away",
             "take the option out of modprobe.d"));
  }
  if (findings.empty()) findings.push_back(Ok("none weakens it"));
  return findings;
}

constexpr std::array kChecks = std::to_array<Check>({
    {Layer::kProcessor, "virtualization", Virtualization},
    {Layer::kFirmware, "firmware IOMMU", FirmwareIommu},
    {Layer::kKernel, "command line", CommandLine},
    {Layer::kKernel, "IOMMU", Iommu},
    {Layer::kKernel, "IOMMU switches", IommuSwitches},
});

}  // namespace

std::span<const Check> MachineChecks() { return kChecks; }

IommuState IommuOf(const DoctorFacts& facts) {
  return facts.picture ? facts.picture->facts.iommu.state : IommuState::kUnknown;
}

}  // namespace vfio_agent
