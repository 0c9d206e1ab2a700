#include "iommu/plan/map_fails.h"

#include "absl/strings/str_format.h"

namespace vfio_agent {
namespace {

constexpr uint16_t kIntel = 0x8086;
constexpr uint32_t kDisplay = 0x03;

constexpr char kRemedy[] =
    "if a guest does not start for it: compare `dmesg | grep 'Host address width'` with the "
    "guest's "
    "address bits, and give it no more (QEMU: -cpu host,host-phys-bits-limit=39; libvirt: "
    "<maxphysaddr mode='passthrough' limit='39'/>)";

bool IsOfProcessor(const PciDevice& device) {
  return device.vendor == kIntel && device.class_code >> 16 == kDisplay && !device.parent &&
         device.address.bus == 0;
}

}  // namespace

// QEMU maps the VF's regions where the guest's firmware has put them: at the top of what the
// processor can address, which is more than the IOMMU of many a client processor can.
void WarnMapFails(const Context&, Draft& draft, size_t i) {
  const PciDevice& device = *draft.devices[i];
  if (draft.plan.members[i].role != Role::kPrimary || !device.IsVf() || !IsOfProcessor(device)) {
    return;
  }
  draft.plan.warnings.push_back(
      {.code = Code::kAddressTooWide,
       .group = draft.plan.group,
       .address = device.address,
       .text = absl::StrFormat("%s is a virtual function of the processor's own adapter: guests "
                               "are known that do not start with one (VFIO_MAP_DMA failed: "
                               "Invalid argument)",
                               Spell(device)),
       .remedy = kRemedy});
}

}  // namespace vfio_agent
