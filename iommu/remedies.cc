// Remedies that the facts of the case decide; code.cc has those that do for any device.
#include <algorithm>

#include "absl/strings/str_format.h"
#include "iommu/plan/planning.h"

namespace vfio_agent {
namespace {

constexpr char kVirtualIommu[] =
    "this node is a virtual machine, so no firmware setting helps: give it a virtual IOMMU where "
    "it "
    "is defined (QEMU: -device intel-iommu,intremap=on,caching-mode=on; libvirt: <iommu "
    "model='intel'>) and boot it with intel_iommu=on; most clouds have none, there only machines "
    "without a hypervisor do";

bool IsMadeHere(const Custody& custody, const PciDevice& device) {
  const auto record = custody.records.find(device.address);
  return record != custody.records.end() && record->second.this_boot && HasMadeVfs(record->second);
}

}  // namespace

std::string ReasonOf(const Refusal& why) {
  return absl::StrFormat("%s: %s", CodeName(why.code), why.text);
}

std::string IommuRemedy(const IommuFacts& iommu) {
  return iommu.is_guest ? kVirtualIommu : std::string(DefaultRemedy(Code::kIommuOff));
}

bool ServesUnsafe(const Plan& plan) {
  return plan.iommu.state == IommuState::kNoIommu &&
         std::ranges::count(plan.warnings, Code::kNoiommu, &Refusal::code) > 0;
}

std::string NoGroupRemedy(const IommuFacts& iommu, const PciDevice& device) {
  if (iommu.state == IommuState::kUnknown) {
    return "in a recording: take it anew with `vfio-agent snapshot` on the node; on a node: see "
           "`ls /sys/kernel/iommu_groups`, and CONFIG_IOMMU_SUPPORT of the kernel";
  }
  return iommu.is_guest ? kVirtualIommu : RemedyFor(Code::kNoIommuGroup, &device);
}

std::string ForeignRemedy(const Draft& draft, size_t i) {
  const PciDevice& device = *draft.devices[i];
  if (draft.makers[i] == nullptr) return RemedyFor(Code::kForeignMember, &device);
  const std::string address = device.address.ToString();
  return absl::StrFormat(
      "a physical function stays with its driver, so allowMembers does not help: see with "
      "`vfio-agent explain %s` why its virtual functions are in its group, and move the card below "
      "a port with ACS; or give it away whole, in an entry without sriov, once "
      "/sys/bus/pci/devices/%s/sriov_numvfs is 0",
      address, address);
}

std::string OtherNumberRemedy(const Custody& custody, const PciDevice& device, int wanted) {
  const std::string address = device.address.ToString();
  const std::string keep =
      absl::StrFormat("to keep the %d: set vfs: %d", device.virtfns.size(), device.virtfns.size());
  if (IsMadeHere(custody, device)) {
    return absl::StrFormat(
        "%s; to have %d: end the guests that have one, add {address: \"%s\"} to the entry's "
        "exclude "
        "(a running daemon notices) or stop the daemon, `vfio-agent release %s`, then take that "
        "back: the %d are made",
        keep, wanted, address, address, wanted);
  }
  return absl::StrFormat(
      "%s or leave vfs out; to have %d: this agent has not made them, so once nothing uses one, "
      "`echo 0 > /sys/bus/pci/devices/%s/sriov_numvfs`: the %d are made then",
      keep, wanted, address, wanted);
}

}  // namespace vfio_agent
