#include "iommu/vgpu/vgpu.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "iommu/mdev/mdev.h"
#include "iommu/plan/silence.h"
#include "iommu/policy/naming.h"
#include "iommu/spread.h"
#include "iommu/vgpu/vgpu_groups.h"

namespace vfio_agent {
namespace {

class VgpuPlanner {
 public:
  VgpuPlanner(const Context& context, Plan& plan)
      : context_(context),
        plan_(plan),
        groups_(context, plan),
        tenants_(context.custody),
        names_(NamesOfVgpus(context.facts, context.custody.records, context.policy)) {}

  void Run() {
    for (const MdevRule& rule : context_.policy.vgpu) RunRule(rule);
    WarnOfLeft();
    for (auto& [name, resource] : resources_) {
      std::ranges::sort(resource.units, {}, &Unit::primary);
      if (!resource.units.empty()) plan_.resources.push_back(std::move(resource));
    }
    std::ranges::stable_sort(plan_.resources, {}, &Resource::name);
  }

 private:
  void RunRule(const MdevRule& rule) {
    std::vector<VgpuSlot> slots = SlotsOf(rule);
    all_tell_ = std::ranges::none_of(slots, &VgpuSlot::IsSilent);
    if (all_tell_) FindVgpuSurplus(context_, rule, names_, slots);
    for (const MdevCount& wanted : rule.types) RunType(rule, wanted, slots);
    for (const VgpuSlot& slot : slots) {
      for (const int group : slot.asked) groups_.AskOf(group);
      for (const PciAddress& function : slot.going) {
        groups_.TakeAway(*FindDevice(context_.facts, function), NameOfGoing(rule, function));
      }
      WarnOfOthers(slot);
    }
  }

  void RunType(const MdevRule& rule, const MdevCount& wanted, std::vector<VgpuSlot>& slots) {
    if (slots.empty()) return;
    const std::optional<int> id = FindVgpuType(names_, wanted.type);
    std::vector<VgpuPlace> places;
    if (id) places = PlacesOf(context_, *id, names_, slots);
    if (places.empty() && !all_tell_) return;  // said by card
    if (places.empty() && id) return WarnOfNoPlace(*id, wanted.count, slots.front());
    if (places.empty()) return RefuseType(wanted, slots);
    std::erase_if(places, [&](const VgpuPlace& place) { return !NameResource(rule, place); });
    if (places.empty()) return;
    for (const VgpuPlace& place : places) {
      for (const VgpuFunction* function : place.slot->functions) {
        if (place.slot->going.contains(function->address)) continue;
        if (VgpuTypeOf(*function, context_.custody.records) == place.type) {
          Offer(rule, place, *function);
        }
      }
    }
    // How many there are of all is not known where one does not tell.
    if (!all_tell_ && rule.spread != MdevSpread::kEach) return;
    DealOut(
        rule.spread, wanted.count, places, [&](VgpuPlace& place) { Give(rule, place); },
        [this](const VgpuPlace& place, int missing) { WarnOfShortage(place, missing); });
  }

  // Parents whose virtual functions can have types; the others are told.
  std::vector<VgpuSlot> SlotsOf(const MdevRule& rule) {
    std::vector<VgpuSlot> slots;
    for (const PciDevice& device : context_.facts.devices) {
      if (FindVgpuRule(context_.policy, device) != &rule) continue;
      groups_.NotePhysical(device);
      VgpuSlot slot = SlotOf(context_.facts, device);
      if (const auto why = WhyNoSlot(context_, slot)) {
        groups_.Refuse(device, *why);
      } else {
        MeetRivals(slot);
        if (const VgpuFunction* const silent = slot.Silent()) {
          groups_.Refuse(device, WhySilent(device, silent->silent));
        }
        slots.push_back(std::move(slot));
      }
    }
    return slots;
  }

  // Warned of where the card has vGPUs already: those stay, and are served.
  void MeetRivals(VgpuSlot& slot) {
    const bool has_some = std::ranges::any_of(
        slot.functions, [](const VgpuFunction* f) { return !f->current.is(0); });
    VgpuRivals rivals = RivalsOf(context_, *slot.physical, has_some);
    slot.rival = std::move(rivals.hinders);
    for (Refusal& warning : rivals.warnings) groups_.Warn(*slot.physical, std::move(warning));
  }

  // A function that has its type.
  void Offer(const MdevRule& rule, const VgpuPlace& place, const VgpuFunction& function) {
    const PciDevice& device = *FindDevice(context_.facts, function.address);
    const std::string name = NameOf(rule, place.type);
    GroupPlan* const group = groups_.Take(device, place.type, name);
    Unit unit = UnitOf(device, place.type);
    if (group == nullptr) {
      unit.reason = "no-iommu-group: the function has no IOMMU group";
    } else if (group->refusals.empty()) {
      group->verdict = Verdict::kBound;
      const Condition condition =
          ConditionOfVgpu(device, function, name, unit.pods, tenants_, context_);
      unit.state = condition.state;
      unit.reason = condition.reason;
      WithholdSurplus(*place.slot, unit);
    } else {
      // A pod can have it, whatever is wrong with it.
      unit.state = UnitState::kUnhealthy;
      unit.reason = ReasonOf(group->refusals.front());
    }
    resources_.at(name).units.push_back(std::move(unit));
  }

  // Who has it keeps it; nobody else is to get it.
  static void WithholdSurplus(const VgpuSlot& slot, Unit& unit) {
    const auto staying = slot.staying.find(unit.primary);
    const bool given = unit.state == UnitState::kReady || unit.state == UnitState::kHeld;
    if (staying == slot.staying.end() || !given) return;
    unit.kept = unit.state == UnitState::kHeld;
    unit.state = UnitState::kWithheld;
    unit.reason = absl::StrFormat("%s: more than vgpu[].types asks for, in use by %s",
                                  CodeName(Code::kHeld), staying->second);
  }

  // One more function gets the type, or would but for what is said.
  void Give(const MdevRule& rule, VgpuPlace& place) {
    const PciDevice& device = *place.free.front();
    place.free.erase(place.free.begin());
    --place.room;
    ++place.have;
    place.slot->given.insert(device.address);
    place.slot->giving = place.type;
    const std::string name = NameOf(rule, place.type);
    GroupPlan* const group = groups_.Take(device, place.type, name);
    Unit unit = UnitOf(device, place.type);
    if (group != nullptr) {
      groups_.AskOf(*device.group);
      if (place.slot->rival) groups_.Refuse(device, *place.slot->rival);
      if (const auto why = WhyNotWritten(context_, device)) groups_.Refuse(device, *why);
      if (group->refusals.empty()) SetType(place, *group, unit);
      if (!group->refusals.empty()) unit.reason = ReasonOf(group->refusals.front());
    }
    resources_.at(name).units.push_back(std::move(unit));
  }

  void SetType(const VgpuPlace& place, GroupPlan& group, Unit& unit) {
    group.verdict = Verdict::kBind;
    group.actions = {SetVgpuType{unit.primary, place.type, names_.at(place.type)},
                     AwaitNode{*group.group}};
    const auto record = context_.custody.records.find(unit.primary);
    const bool lost = record != context_.custody.records.end() && record->second.IsTaken();
    unit.state = lost ? UnitState::kUnhealthy : UnitState::kToBind;
    unit.reason = lost ? absl::StrFormat("%s: its vGPU type is gone, and is set again",
                                         CodeName(Code::kDriverChanged))
                       : "waits for its vGPU type to be set";
  }

  Unit UnitOf(const PciDevice& device, int type) const {
    return {.id = device.address.ToString(),
            .primary = device.address,
            .addresses = {device.address},
            .group = device.group,
            .numa_node = device.numa_node,
            .state = UnitState::kRefused,
            .pods = tenants_.PodsOf(device.address),
            .vgpu_type = absl::StrFormat("%d", type),
            .type_name = names_.at(type)};
  }

  std::string NameOf(const MdevRule& rule, int type) const {
    return absl::StrFormat("%s/%s", rule.domain, MdevTypeResourceName(names_.at(type)));
  }

  std::string NameOfGoing(const MdevRule& rule, const PciAddress& function) const {
    const int type = *context_.custody.records.at(function).vgpu_type;
    return names_.contains(type) ? NameOf(rule, type) : "";
  }

  // False where it could not be told from another.
  bool NameResource(const MdevRule& rule, const VgpuPlace& place) {
    const PciDevice& physical = *place.slot->physical;
    const std::string name = NameOf(rule, place.type);
    if (const absl::Status status = CheckResourceName(name); !status.ok()) {
      groups_.Refuse(physical, {.code = Code::kNameInvalid, .text = std::string(status.message())});
      return false;
    }
    if (!place.slot->types.insert(place.type).second) {
      groups_.Refuse(physical, {.code = Code::kNameCollision,
                                .text = absl::StrFormat("vgpu[].types names %s (%d) twice",
                                                        names_.at(place.type), place.type),
                                .remedy = "name each type once, by its name or by its number"});
      return false;
    }
    const bool taken = std::ranges::any_of(plan_.resources, [&name](const Resource& other) {
      return ResourceVariable(other.name) == ResourceVariable(name);
    });
    const auto [owner, fresh] = owners_.try_emplace(ResourceVariable(name), place.type, name);
    if (taken || owner->second != std::pair(place.type, name)) {
      groups_.Refuse(physical, {.code = Code::kNameCollision,
                                .text = absl::StrFormat(
                                    "the vGPU type '%s' would be the resource '%s', which is "
                                    "taken by others",
                                    names_.at(place.type), name),
                                .remedy = "give vgpu[].domain another value"});
      return false;
    }
    const Resource& resource =
        resources_.try_emplace(name, EmptyResource(rule, name, physical)).first->second;
    if (resource.serve == rule.serve) return true;
    groups_.Refuse(
        physical,
        {.code = Code::kNameCollision, .text = OtherwiseServed(resource), .remedy = kServeRemedy});
    return false;
  }

  void WarnOfShortage(const VgpuPlace& place, int missing) {
    if (place.slot->IsSilent()) return;
    groups_.Warn(*place.slot->physical, ShortageOf(context_, place, names_, missing));
  }

  // A type whose name is known, and no card has any or lists it.
  void WarnOfNoPlace(int type, int missing, VgpuSlot& slot) {
    if (missing > 0) WarnOfShortage({.slot = &slot, .type = type}, missing);
  }

  void RefuseType(const MdevCount& wanted, const std::vector<VgpuSlot>& slots) {
    UnknownVgpu unknown = UnknownVgpuType(context_, wanted.type, slots, names_);
    unknown.waits ? groups_.Warn(*unknown.physical, std::move(unknown.why))
                  : groups_.Refuse(*unknown.physical, std::move(unknown.why));
  }

  // What has a type that the entry does not name is offered to nobody; what is more than it asks
  // for waits for who has it.
  void WarnOfOthers(const VgpuSlot& slot) {
    for (const VgpuFunction* function : slot.functions) {
      const PciAddress& address = function->address;
      const PciDevice& device = *FindDevice(context_.facts, address);
      const auto type = VgpuTypeOf(*function, context_.custody.records);
      if (const auto staying = slot.staying.find(address); staying != slot.staying.end()) {
        groups_.Warn(device, StaysInUse(address, *type, names_, staying->second));
        continue;
      }
      const GroupPlan* const group = groups_.Find(device);
      if (group != nullptr && TakesVgpuAway(*group)) continue;
      if (type == 0 || (type && slot.types.contains(*type))) continue;
      if (!type && slot.IsSilent()) continue;
      groups_.Warn(device, NotOffered(context_, *function, names_));
    }
  }

  // As with whole devices: what leaves the configuration stays until `release`.
  void WarnOfLeft() {
    for (const VgpuFunction& function : context_.facts.vgpu.functions) {
      const PciDevice* const physical = FindDevice(context_.facts, function.physical);
      const bool left = physical == nullptr || FindVgpuRule(context_.policy, *physical) == nullptr;
      if (!left || !IsOwnVgpu(function, context_.custody.records)) continue;
      groups_.Warn(*FindDevice(context_.facts, function.address), LeftBehind(function, names_));
    }
  }

  const Context& context_;
  Plan& plan_;
  VgpuGroups groups_;
  const Tenants tenants_;
  const VgpuNames names_;
  bool all_tell_ = true;  // of the entry's cards
  std::map<std::string, Resource> resources_;
  std::map<std::string, std::pair<int, std::string>> owners_;  // by variable: type, resource
};

}  // namespace

void PlanVgpus(const Context& context, Plan& plan) {
  const bool set_some = std::ranges::any_of(context.custody.records, [](const auto& entry) {
    return entry.second.vgpu_type.has_value();
  });
  if (set_some || !context.policy.vgpu.empty()) VgpuPlanner(context, plan).Run();
}

}  // namespace vfio_agent
