#include "iommu/vgpu/vgpu_slots.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"

namespace vfio_agent {
namespace {

bool CanBe(const VgpuFunction& function, int type) {
  return std::ranges::count(function.creatable, type, &VgpuType::id) > 0;
}

// A write to it has not come back: whatever the driver lists of it is no news.
bool IsUnderway(const Context& context, const PciDevice& device) {
  const Underway& underway = context.custody.underway;
  return device.group &&
         (underway.at_work.contains(*device.group) || underway.stuck.contains(*device.group));
}

// It had the type by this agent's doing, or was about to.
bool WasOurs(const Context& context, const VgpuFunction& function, int type) {
  const auto record = context.custody.records.find(function.address);
  return record != context.custody.records.end() && record->second.this_boot &&
         record->second.vgpu_type == type;
}

VgpuPlace PlaceOf(const Context& context, int type, VgpuSlot& slot) {
  VgpuPlace place{.slot = &slot, .type = type};
  std::vector<const PciDevice*> others;
  for (const VgpuFunction* function : slot.functions) {
    const bool going = slot.going.contains(function->address);
    if (!going && VgpuTypeOf(*function, context.custody.records) == type) ++place.have;
    if (!function->current.is(0) || slot.given.contains(function->address)) continue;
    if (slot.IsSilent()) continue;
    const PciDevice* const device = FindDevice(context.facts, function->address);
    if (!device->group) continue;
    const bool ours = WasOurs(context, *function, type);
    if (!CanBe(*function, type) && !(ours && IsUnderway(context, *device))) continue;
    (ours ? place.free : others).push_back(device);
  }
  place.free.insert(place.free.end(), others.begin(), others.end());
  if (slot.giving.value_or(type) != type) place.free.clear();
  place.room = static_cast<int>(place.free.size());
  return place;
}

bool HasRoomForNothing(const VgpuSlot& slot) {
  return std::ranges::all_of(
      slot.functions, [](const VgpuFunction* function) { return function->creatable.empty(); });
}

const ResourceRule* FindSriov(const Policy& policy, const PciDevice& device) {
  for (const ResourceRule& rule : policy.resources) {
    const bool selects = MatchesAny(rule.select, device) && !MatchesAny(rule.exclude, device);
    if (rule.sriov && selects) return &rule;
  }
  return nullptr;
}

// Somebody else in the group, also one that is listed there and could not be read.
std::string OtherMember(const Context& context, const PciDevice& device) {
  for (const PciDevice& other : context.facts.devices) {
    const bool same = other.address == device.address;
    if (other.group == device.group && !same && !other.IsBridge()) return Spell(other);
  }
  for (const PciAddress& listed : context.facts.groups.at(*device.group).listed) {
    if (FindDevice(context.facts, listed) == nullptr) return listed.ToString();
  }
  return "";
}

}  // namespace

const VgpuFunction* VgpuSlot::Silent() const {
  const auto silent = std::ranges::find_if(
      functions, [](const VgpuFunction* function) { return !function->silent.empty(); });
  return silent == functions.end() ? nullptr : *silent;
}

VgpuSlot SlotOf(const NodeFacts& facts, const PciDevice& physical) {
  VgpuSlot slot{.physical = &physical};
  for (const VgpuFunction& function : facts.vgpu.functions) {
    if (function.physical == physical.address) slot.functions.push_back(&function);
  }
  return slot;
}

std::optional<int> FindVgpuType(const VgpuNames& names, std::string_view wanted) {
  int id = 0;
  if (absl::SimpleAtoi(std::string(wanted), &id)) {
    return names.contains(id) ? std::optional(id) : std::nullopt;
  }
  for (const auto& [type, name] : names) {
    if (name == wanted) return type;
  }
  return std::nullopt;
}

std::vector<VgpuPlace> PlacesOf(const Context& context, int type, const VgpuNames& names,
                                std::vector<VgpuSlot>& slots) {
  std::vector<VgpuPlace> places;
  if (!names.contains(type)) return places;
  for (VgpuSlot& slot : slots) {
    VgpuPlace place = PlaceOf(context, type, slot);
    const bool listed = std::ranges::any_of(
        slot.functions, [type](const VgpuFunction* function) { return CanBe(*function, type); });
    if (place.have > 0 || place.room > 0 || listed || HasRoomForNothing(slot)) {
      places.push_back(std::move(place));
    }
  }
  return places;
}

std::optional<Refusal> WhyNoSlot(const Context& context, const VgpuSlot& slot) {
  const PciDevice& physical = *slot.physical;
  if (FindSriov(context.policy, physical) != nullptr) {
    return Refusal{.code = Code::kForeignManager,
                   .text = absl::StrFormat(
                       "%s is selected by vgpu[].parent and by an entry of resources[] with sriov: "
                       "its virtual functions are given away by neither",
                       Spell(physical)),
                   .remedy = "take it out of one of the two (resources[].exclude)"};
  }
  if (!slot.functions.empty()) return std::nullopt;
  const std::string entry = ParentEntry(context.policy, physical);
  return Refusal{
      .code = Code::kVfioDriverMissing,
      .text = absl::StrFormat(
          "%s selects %s, which has no virtual function with nvidia/current_vgpu_type%s", entry,
          Spell(physical), physical.virtfns.empty() ? ": it has none at all" : ""),
      .remedy = absl::StrFormat("install NVIDIA's driver for vGPU hosts, and switch its virtual "
                                "functions on: /usr/lib/nvidia/sriov-manage -e %s (cards whose "
                                "vGPUs are mediated devices: see `mdev`); or narrow %s: what that "
                                "selects is no whole device, whatever resources[] says",
                                physical.address.ToString(), entry)};
}

std::optional<Refusal> WhyNotWritten(const Context& context, const PciDevice& device) {
  const Custody& custody = context.custody;
  if (const auto stuck = custody.underway.stuck.find(*device.group);
      stuck != custody.underway.stuck.end()) {
    return Refusal{
        .code = Code::kUnbindStuck,
        .text = absl::StrFormat("the kernel has not returned from `%s`", stuck->second.command)};
  }
  if (custody.underway.elsewhere.contains(*device.group)) {
    return Refusal{.code = Code::kForeignManager,
                   .text = absl::StrFormat(
                       "another vfio-agent process is still at work on group %d", *device.group),
                   .remedy = "wait for it to end, then try again"};
  }
  if (!custody.inquiry) return std::nullopt;
  const std::string users = WhyHeld(custody, context.facts, *device.group);
  if (users.empty()) return std::nullopt;
  return Refusal{.code = Code::kHeld,
                 .text = absl::StrFormat("group %d is in use by %s: no vGPU type is written to %s",
                                         *device.group, users, device.address.ToString())};
}

std::optional<Refusal> WhyNotGiven(const Context& context, const PciDevice& device) {
  const GroupFacts& group = context.facts.groups.at(*device.group);
  if (group.noiommu) {
    return Refusal{.code = Code::kNoiommu,
                   .text = absl::StrFormat("group %d of %s is of noiommu mode: nothing isolates it",
                                           *device.group, Spell(device))};
  }
  if (group.direct_reserved) {
    return Refusal{.code = Code::kRmrrDirect,
                   .text = absl::StrFormat("group %d of %s has a region that the firmware reserves "
                                           "(direct): the kernel refuses it to guests",
                                           *device.group, Spell(device))};
  }
  if (device.address.domain > 0xffff) {
    return Refusal{
        .code = Code::kAddressTooWide,
        .text = absl::StrFormat("the domain of %s has more than four digits", Spell(device))};
  }
  const std::string other = OtherMember(context, device);
  if (other.empty()) return std::nullopt;
  return Refusal{
      .code = Code::kForeignMember,
      .text = absl::StrFormat("%s shares group %d with %s: a vGPU needs a group to itself",
                              Spell(device), *device.group, other)};
}

}  // namespace vfio_agent
