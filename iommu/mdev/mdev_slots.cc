#include "iommu/mdev/mdev_slots.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace vfio_agent {

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
