#include "iommu/code.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace vfio_agent {
namespace {

struct Row {
  Code code;
  std::string_view name;
  std::string_view remedy;
};

// In the order of the enumeration; a test holds the two together.
constexpr std::array<Row, 35> kRows = {{
    {Code::kIommuOff, "iommu-off",
     "switch VT-d or AMD-Vi on in the firmware and boot with intel_iommu=on (Intel) or without "
     "amd_iommu=off (AMD)"},
    {Code::kNoIommuGroup, "no-iommu-group",
     "no IOMMU translates for this device: check the firmware's IOMMU setting for its slot and "
     "`dmesg | grep -i -e dmar -e amd-vi -e smmu`"},
    {Code::kNoiommu, "noiommu",
     "boot with a real IOMMU; noiommu mode gives a guest the whole memory of the host"},
    {Code::kForeignMember, "foreign-member",
     "move one of the cards to a slot below a port with ACS, or name the member in "
     "resources[].allowMembers if the guest may have it"},
    {Code::kInUseNetwork, "in-use-network", "move the network configuration off this interface"},
    {Code::kInUseStorage, "in-use-storage", "unmount or move what is stored on this device"},
    {Code::kInUseDisplay, "in-use-display",
     "stop the display server and the console that use this device"},
    {Code::kInUseHolder, "in-use-holder", "stop the process that has the device open"},
    {Code::kBootDisplay, "boot-display",
     "make another adapter the boot display in the firmware, or list the address in "
     "guard.override if nobody needs the console"},
    {Code::kPfHasVfs, "pf-has-vfs",
     "echo 0 > /sys/bus/pci/devices/<address>/sriov_numvfs, once no guest uses a VF"},
    {Code::kVfNeedsOptIn, "vf-needs-opt-in",
     "a VF is not a whole device: select its physical function in an entry with sriov:, or leave "
     "it "
     "to its manager"},
    {Code::kVfioDriverMissing, "vfio-driver-missing",
     "modprobe vfio-pci on the host, and mount the host's /lib/modules if the agent is to load it"},
    {Code::kProbeRefused, "probe-refused",
     "the kernel's reason is in its log: `dmesg | grep <address>`"},
    {Code::kUnbindTimeout, "unbind-timeout",
     "a process has the device open: `fuser -v /dev/nvidia* /dev/dri/*`; stop it, the unbind then "
     "ends by itself"},
    {Code::kUnbindStuck, "unbind-stuck",
     "the kernel still waits inside the unbind: stop what has the device open; if nothing has, "
     "only a reboot helps"},
    {Code::kOverrideUnsupported, "override-unsupported",
     "this kernel has no driver_override (before 3.16): update it"},
    {Code::kPermissionDenied, "permission-denied",
     "run as root with a writable /sys (in a pod: /sys/devices and /sys/bus/pci mounted "
     "read-write)"},
    {Code::kRmrrDirect, "rmrr-direct",
     "the firmware keeps memory for this device (RMRR): switch off its remote management or shared "
     "memory features in the firmware"},
    {Code::kConfigUnreadable, "config-unreadable",
     "the device does not answer on the bus: check power and seating, then remove and rescan it"},
    {Code::kPowerD3cold, "power-d3cold",
     "echo 0 > /sys/bus/pci/devices/<address>/d3cold_allowed and wake the device; if it stays in "
     "D3cold, power-cycle the machine"},
    {Code::kNoReset, "no-reset",
     "a second guest may find the device as the first one left it: power-cycle between guests"},
    {Code::kSharedBusReset, "shared-bus-reset",
     "its only reset is that of the bus, which others share: give them to the same guest or expect "
     "that it is not reset"},
    {Code::kAcsOverride, "acs-override",
     "take pcie_acs_override off the kernel command line where guests do not trust each other"},
    {Code::kGroupChanged, "group-changed",
     "restart the guests that use the group; the agent has taken the new members into account"},
    {Code::kDriverChanged, "driver-changed",
     "somebody bound the device to another driver; the agent takes it back when nothing uses it"},
    {Code::kNodeMissing, "node-missing",
     "the kernel made no /dev/vfio node: check that /dev of the host is mounted and vfio is "
     "loaded"},
    {Code::kGroupSplit, "group-split",
     "another pod has a device of the same group, a part of the unit is not ready, or the kubelet "
     "does not say which pods have what: it is offered again when that pod ends, all parts are "
     "ready, or the kubelet answers"},
    {Code::kHeld, "held",
     "stop the guest that uses the device, or mend what keeps it from being known who does; then "
     "try again"},
    {Code::kExcluded, "excluded", "take it off resources[].exclude if it is to be given away"},
    {Code::kAddressTooWide, "address-too-wide",
     "KubeVirt reads four-digit domains only; switch VMD off for this slot in the firmware"},
    {Code::kNameCollision, "name-collision",
     "give one of the resources another name in resources[].name or aliases"},
    {Code::kNameInvalid, "name-invalid",
     "set resources[].name or an alias: a DNS domain, a slash, then up to 63 of A-Z a-z 0-9 - _ ."},
    {Code::kDeviceGone, "device-gone",
     "the device left the bus: check it, then echo 1 > /sys/bus/pci/rescan"},
    {Code::kAerFatal, "aer-fatal",
     "the device reported a fatal error: see dmesg, reset or replace it"},
    {Code::kForeignManager, "foreign-manager",
     "another plugin serves this resource: switch it off, or rename one of the two"},
}};

const Row& RowOf(Code code) { return kRows.at(static_cast<size_t>(code)); }

}  // namespace

std::string_view CodeName(Code code) { return RowOf(code).name; }

std::optional<Code> FindCode(std::string_view text) {
  constexpr std::string_view kEnd = ": ";
  while (!text.empty()) {
    const size_t end = text.find(kEnd);
    if (end == std::string_view::npos) return std::nullopt;
    const auto row = std::ranges::find(kRows, text.substr(0, end), &Row::name);
    if (row != kRows.end()) return row->code;
    text.remove_prefix(end + kEnd.size());
  }
  return std::nullopt;
}

std::string_view DefaultRemedy(Code code) { return RowOf(code).remedy; }

bool IsWarning(Code code) {
  return code == Code::kNoReset || code == Code::kSharedBusReset || code == Code::kAcsOverride;
}

bool IsGuard(Code code) {
  return code == Code::kInUseNetwork || code == Code::kInUseStorage ||
         code == Code::kInUseDisplay || code == Code::kInUseHolder || code == Code::kBootDisplay;
}

}  // namespace vfio_agent
