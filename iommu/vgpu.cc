#include "iommu/vgpu.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "iommu/mdev.h"
#include "iommu/naming.h"
#include "iommu/silence.h"
#include "iommu/spread.h"
#include "iommu/vgpu_slots.h"

namespace vfio_agent {
namespace {

class VgpuPlanner {
 public:
  VgpuPlanner(const Context& context, Plan& plan)
      : context_(context),
        plan_(plan),
        tenants_(context.custody),
        names_(NamesOfVgpus(context.facts, context.custody.records, context.policy)) {}

  void Run() {
    for (const MdevRule& rule : context_.policy.vgpu) RunRule(rule);
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
    for (const MdevCount& wanted : rule.types) RunType(rule, wanted, slots);
    for (const VgpuSlot& slot : slots) WarnOfOthers(slot);
  }

  void RunType(const MdevRule& rule, const MdevCount& wanted, std::vector<VgpuSlot>& slots) {
    if (slots.empty()) return;
    const std::optional<int> id = FindVgpuType(names_, wanted.type);
    std::vector<VgpuPlace> places;
    if (id) places = PlacesOf(context_, *id, names_, slots);
    if (places.empty() && !all_tell_) return;  // said by card
    if (places.empty() && id) return WarnOfNoPlace(*id, wanted.count, slots.front());
    if (places.empty()) return RefuseType(wanted, *slots.front().physical);
    std::erase_if(places, [&](const VgpuPlace& place) { return !NameResource(rule, place); });
    if (places.empty()) return;
    for (const VgpuPlace& place : places) {
      for (const VgpuFunction* function : place.slot->functions) {
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
      NotePhysical(device);
      VgpuSlot slot = SlotOf(context_.facts, device);
      if (const auto why = WhyNoSlot(context_, slot)) {
        Refuse(device, *why);
      } else {
        MeetRivals(slot);
        if (const VgpuFunction* const silent = slot.Silent()) {
          Refuse(device, WhySilent(device, silent->silent));
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
    for (Refusal& warning : rivals.warnings) Warn(*slot.physical, std::move(warning));
  }

  // It is the host's, and so are the others of its group.
  void NotePhysical(const PciDevice& device) {
    GroupPlan* const group = GroupOf(device);
    if (group == nullptr || group->verdict != Verdict::kUnselected) return;
    for (Member& member : group->members) {
      if (member.address != device.address) continue;
      member.role = Role::kPhysical;
      member.action = MemberAction::kKeep;
    }
  }

  // A function that has its type.
  void Offer(const MdevRule& rule, const VgpuPlace& place, const VgpuFunction& function) {
    const PciDevice& device = *FindDevice(context_.facts, function.address);
    const std::string name = NameOf(rule, place.type);
    GroupPlan* const group = Take(device, place.type, name);
    Unit unit = UnitOf(device, place.type);
    if (group == nullptr) {
      unit.reason = "no-iommu-group: the function has no IOMMU group";
    } else if (group->refusals.empty()) {
      group->verdict = Verdict::kBound;
      const Condition condition =
          ConditionOfVgpu(device, function, name, unit.pods, tenants_, context_);
      unit.state = condition.state;
      unit.reason = condition.reason;
    } else {
      // A pod can have it, whatever is wrong with it.
      unit.state = UnitState::kUnhealthy;
      unit.reason = ReasonOf(group->refusals.front());
    }
    resources_.at(name).units.push_back(std::move(unit));
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
    GroupPlan* const group = Take(device, place.type, name);
    Unit unit = UnitOf(device, place.type);
    if (group != nullptr) {
      AskOf(*device.group);
      if (place.slot->rival) Refuse(device, *place.slot->rival);
      if (const auto why = WhyNotWritten(context_, device)) Refuse(device, *why);
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

  // Before a write: who has it. Not of what is underway, for even looking at that can block.
  void AskOf(int group) {
    const Underway& underway = context_.custody.underway;
    if (underway.at_work.contains(group) || underway.stuck.contains(group)) return;
    std::vector<int>& groups = plan_.question.groups;
    if (std::ranges::count(groups, group) == 0) groups.push_back(group);
  }

  // The function's group, with its role; refused where somebody else is in it.
  GroupPlan* Take(const PciDevice& device, int type, const std::string& name) {
    GroupPlan* const group = GroupOf(device);
    if (group == nullptr) return nullptr;
    group->resource = name;
    group->vgpu_type = absl::StrFormat("%d", type);
    for (Member& member : group->members) {
      if (member.address != device.address) continue;
      member.role = Role::kPrimary;
      member.action = MemberAction::kKeep;
    }
    if (const auto why = WhyNotGiven(context_, device)) Refuse(device, *why);
    return group;
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

  // False where it could not be told from another.
  bool NameResource(const MdevRule& rule, const VgpuPlace& place) {
    const PciDevice& physical = *place.slot->physical;
    const std::string name = NameOf(rule, place.type);
    if (const absl::Status status = CheckResourceName(name); !status.ok()) {
      Refuse(physical, {.code = Code::kNameInvalid, .text = std::string(status.message())});
      return false;
    }
    if (!place.slot->types.insert(place.type).second) {
      Refuse(physical, {.code = Code::kNameCollision,
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
      Refuse(physical,
             {.code = Code::kNameCollision,
              .text = absl::StrFormat("the vGPU type '%s' would be the resource '%s', which is "
                                      "taken by others",
                                      names_.at(place.type), name),
              .remedy = "give vgpu[].domain another value"});
      return false;
    }
    const Resource& resource =
        resources_.try_emplace(name, EmptyResource(rule, name, physical)).first->second;
    if (resource.serve == rule.serve) return true;
    Refuse(
        physical,
        {.code = Code::kNameCollision, .text = OtherwiseServed(resource), .remedy = kServeRemedy});
    return false;
  }

  GroupPlan* GroupOf(const PciDevice& device) {
    for (GroupPlan& group : plan_.groups) {
      if (device.group && group.group == device.group) return &group;
    }
    return nullptr;
  }

  void WarnOfShortage(const VgpuPlace& place, int missing) {
    if (!place.slot->IsSilent()) Warn(*place.slot->physical, ShortageOf(place, names_, missing));
  }

  // A type whose name is known, and no card has any or lists it.
  void WarnOfNoPlace(int type, int missing, VgpuSlot& slot) {
    if (missing > 0) WarnOfShortage({.slot = &slot, .type = type}, missing);
  }

  void RefuseType(const MdevCount& wanted, const PciDevice& physical) {
    Refuse(physical, UnknownVgpuType(context_, wanted.type, physical));
  }

  // What has a type that the entry does not name is offered to nobody.
  void WarnOfOthers(const VgpuSlot& slot) {
    for (const VgpuFunction* function : slot.functions) {
      const auto type = VgpuTypeOf(*function, context_.custody.records);
      if (type == 0 || (type && slot.types.contains(*type))) continue;
      if (!type && slot.IsSilent()) continue;
      Warn(*FindDevice(context_.facts, function->address), NotOffered(context_, *function, names_));
    }
  }

  void Warn(const PciDevice& device, Refusal warning) {
    warning.group = device.group;
    warning.address = device.address;
    if (GroupPlan* const group = GroupOf(device)) group->warnings.push_back(warning);
    plan_.warnings.push_back(std::move(warning));
  }

  void Refuse(const PciDevice& device, Refusal refusal) {
    refusal.group = device.group;
    refusal.address = device.address;
    if (refusal.remedy.empty()) refusal.remedy = RemedyFor(refusal.code, &device);
    if (GroupPlan* const group = GroupOf(device)) {
      group->refusals.push_back(refusal);
      group->actions.clear();
      group->verdict = Verdict::kRefused;
    }
    plan_.refusals.push_back(std::move(refusal));
  }

  const Context& context_;
  Plan& plan_;
  const Tenants tenants_;
  const VgpuNames names_;
  bool all_tell_ = true;  // of the entry's cards
  std::map<std::string, Resource> resources_;
  std::map<std::string, std::pair<int, std::string>> owners_;  // by variable: type, resource
};

}  // namespace

void PlanVgpus(const Context& context, Plan& plan) {
  if (!context.policy.vgpu.empty()) VgpuPlanner(context, plan).Run();
}

}  // namespace vfio_agent
