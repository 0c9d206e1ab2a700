#include "iommu/mdev/mdev_slots.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "iommu/vgpu/vgpu.h"

namespace vfio_agent {
namespace {

bool IsSlot(const std::vector<MdevSlot>& slots, const PciAddress& address) {
  return std::ranges::any_of(
      slots, [&address](const MdevSlot& slot) { return slot.parent->address == address; });
}

// `other`, which the same entry selects, is the card's parent, or is told of instead of `device`.
bool SpeaksFor(const PciDevice& other, const PciDevice& device,
               const std::vector<MdevSlot>& slots) {
  if (device.IsVf()) return other.address == *device.physfn;
  const bool is_slot = IsSlot(slots, other.address);
  if (other.physfn == device.address) return is_slot;
  return !IsDisplay(device) && SameSlot(other.address, device.address) &&
         (IsDisplay(other) || is_slot);
}

}  // namespace

std::vector<MdevSlot> MdevSlotsOf(const Context& context, const MdevRule& rule) {
  std::vector<MdevSlot> slots;
  for (const MdevParent& parent : context.facts.mdev.parents) {
    const PciDevice* const device = FindDevice(context.facts, parent.address);
    if (device == nullptr || FindMdevRule(context.policy, *device) != &rule) continue;
    MdevSlot slot{.parent = &parent, .device = device};
    for (const MdevInstance& mdev : context.facts.mdev.instances) {
      if (mdev.parent == parent.address) slot.uuids.push_back(mdev.uuid);
    }
    slots.push_back(std::move(slot));
  }
  return slots;
}

std::vector<MdevPlace> MdevPlacesOf(const Context& context, const std::string& wanted,
                                    std::vector<MdevSlot>& slots) {
  std::vector<MdevPlace> places;
  for (MdevSlot& slot : slots) {
    const MdevType* const type = FindMdevType(*slot.parent, wanted);
    if (type == nullptr) continue;
    const auto have =
        std::ranges::count_if(context.facts.mdev.instances, [&](const MdevInstance& mdev) {
          return mdev.parent == slot.parent->address && mdev.type == type->id;
        });
    places.push_back({.slot = &slot,
                      .type = type,
                      .have = static_cast<int>(have),
                      .room = slot.IsSilent() ? 0 : type->available.value_or(0)});
  }
  return places;
}

std::vector<const PciDevice*> FindBarren(const Context& context, const MdevRule& rule,
                                         const std::vector<MdevSlot>& slots) {
  std::vector<const PciDevice*> selected, barren;
  for (const PciDevice& device : context.facts.devices) {
    if (FindMdevRule(context.policy, device) == &rule) selected.push_back(&device);
  }
  for (const PciDevice* device : selected) {
    const bool spoken_for = std::ranges::any_of(selected, [&](const PciDevice* other) {
      return other != device && SpeaksFor(*other, *device, slots);
    });
    if (!spoken_for && !IsSlot(slots, device->address)) barren.push_back(device);
  }
  return barren;
}

Refusal WhyBarren(const Context& context, const PciDevice& device) {
  const std::string entry = ParentEntry(context.policy, device);
  const std::string vfs =
      device.sriov_total_vfs.value_or(0) > 0
          ? absl::StrFormat(
                ", and switch on the virtual functions, which are the parents then "
                "(sriov-manage -e %s)",
                device.address.ToString())
          : "";
  return {.code = Code::kVfioDriverMissing,
          .group = device.group,
          .address = device.address,
          .text = absl::StrFormat("%s selects %s, which makes no mediated devices: its driver "
                                  "shows no mdev_supported_types",
                                  entry, Spell(device)),
          .remedy = absl::StrFormat("install the vendor's driver for vGPU hosts%s; or narrow %s: "
                                    "what that selects is no whole device, whatever resources[] "
                                    "says",
                                    vfs, entry)};
}

Refusal MdevShortageOf(const MdevPlace& place, int missing) {
  return {.code = Code::kProbeRefused,
          .group = place.slot->device->group,
          .address = place.slot->parent->address,
          .text = absl::StrFormat("%d more of type %s (%s) are wanted than the kernel has room for",
                                  missing, MdevTypeName(*place.type), place.type->id),
          .remedy =
              "lower the count in mdev[].types, or remove instances of other types: see "
              "available_instances below mdev_supported_types"};
}

}  // namespace vfio_agent
