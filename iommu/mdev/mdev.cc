#include "iommu/mdev/mdev.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "absl/strings/str_format.h"
#include "iommu/mdev/mdev_slots.h"
#include "iommu/plan/condition.h"
#include "iommu/plan/job_key.h"
#include "iommu/plan/silence.h"
#include "iommu/policy/naming.h"
#include "iommu/spread.h"

namespace vfio_agent {
namespace {

GroupPlan LoneGroup(const PciDevice& device) {
  return {.members = {{.address = device.address,
                       .vendor = device.vendor,
                       .device = device.device,
                       .class_code = device.class_code,
                       .driver = device.driver}}};
}

class MdevPlanner {
 public:
  MdevPlanner(const Context& context, Plan& plan)
      : context_(context), plan_(plan), tenants_(context.custody) {}

  void Run() {
    for (const MdevRule& rule : context_.policy.mdev) RunRule(rule);
    for (auto& [name, resource] : resources_) {
      std::ranges::sort(resource.units, [](const Unit& a, const Unit& b) {
        return std::tie(a.primary, a.id) < std::tie(b.primary, b.id);
      });
      if (!resource.units.empty()) plan_.resources.push_back(std::move(resource));
    }
    std::ranges::stable_sort(plan_.resources, {}, &Resource::name);
  }

 private:
  void RunRule(const MdevRule& rule) {
    std::vector<MdevSlot> slots = MdevSlotsOf(context_, rule);
    TellBarren(rule, slots);
    if (slots.empty()) return;
    const bool all_tell = std::ranges::none_of(slots, &MdevSlot::IsSilent);
    for (const MdevCount& wanted : rule.types) {
      std::vector<MdevPlace> places = MdevPlacesOf(context_, wanted.type, slots);
      if (places.empty() && all_tell) RefuseType(wanted, slots);
      std::erase_if(places, [&](const MdevPlace& place) { return !NameResource(rule, place); });
      if (places.empty()) continue;
      for (const MdevPlace& place : places) OfferInstances(rule, place);
      // How many there are of all is not known where one does not tell its types.
      if (all_tell || rule.spread == MdevSpread::kEach) Deal(rule, wanted, places);
    }
    for (MdevSlot& slot : slots) Conclude(slot);
  }

  void Deal(const MdevRule& rule, const MdevCount& wanted, std::vector<MdevPlace>& places) {
    DealOut(
        rule.spread, wanted.count, places, [&](MdevPlace& place) { Create(rule, place); },
        [this](const MdevPlace& place, int missing) { WarnOfShortage(place, missing); });
  }

  void Create(const MdevRule& rule, MdevPlace& place) {
    MdevSlot& slot = *place.slot;
    const std::string uuid = FreeMdevUuid(slot.parent->address, place.type->id, slot.uuids);
    slot.uuids.push_back(uuid);
    slot.actions.push_back(CreateMdev{slot.parent->address, place.type->id, uuid});
    --place.room;
    ++place.have;
    Add(rule, place, {.id = uuid, .state = UnitState::kToBind, .reason = "waits to be created"});
  }

  void OfferInstances(const MdevRule& rule, const MdevPlace& place) {
    for (const MdevInstance& mdev : context_.facts.mdev.instances) {
      if (mdev.parent != place.slot->parent->address || mdev.type != place.type->id) continue;
      Unit unit{.id = mdev.uuid, .group = mdev.group, .pods = tenants_.PodsOf(mdev.uuid)};
      const Condition condition =
          ConditionOfMdev(mdev, MdevResourceName(rule, *place.type), unit.pods, tenants_,
                          context_.facts, context_.policy);
      unit.state = condition.state;
      unit.reason = condition.reason;
      if (place.slot->IsSilent() && unit.state == UnitState::kReady) {
        unit.state = UnitState::kUnhealthy;
        unit.reason = ReasonOf(WhySilent(*place.slot->device, place.slot->parent->silent));
      }
      Add(rule, place, std::move(unit));
    }
  }

  void Add(const MdevRule& rule, const MdevPlace& place, Unit unit) {
    unit.primary = place.slot->parent->address;
    unit.numa_node = place.slot->device->numa_node;
    unit.mdev_type = place.type->id;
    unit.type_name = MdevTypeName(*place.type);
    const std::string name = MdevResourceName(rule, *place.type);
    if (GroupPlan* const group = GroupOf(*place.slot->device);
        group != nullptr && group->resource.empty()) {
      group->resource = name;
    }
    resources_.at(name).units.push_back(std::move(unit));
  }

  // False where it could not be told from another.
  bool NameResource(const MdevRule& rule, const MdevPlace& place) {
    const std::string name = MdevResourceName(rule, *place.type);
    if (const absl::Status status = CheckResourceName(name); !status.ok()) {
      Refuse(place.slot->device, Code::kNameInvalid, std::string(status.message()));
      return false;
    }
    if (!place.slot->types.insert(place.type->id).second) {
      Refuse(place.slot->device, Code::kNameCollision,
             absl::StrFormat("mdev[].types names %s (%s) twice", MdevTypeName(*place.type),
                             place.type->id),
             "name each type once, by its name or by its directory");
      return false;
    }
    const auto [owner, fresh] =
        types_.try_emplace(MdevVariable(name), MdevTypeName(*place.type), name);
    const bool whole = std::ranges::count(plan_.resources, name, &Resource::name) > 0;
    if (whole || owner->second != std::pair(MdevTypeName(*place.type), name)) {
      Refuse(place.slot->device, Code::kNameCollision,
             absl::StrFormat("the type '%s' would be the resource '%s', which is taken by %s",
                             MdevTypeName(*place.type), name,
                             whole ? "whole devices" : "the type '" + owner->second.first + "'"),
             "give mdev[].domain another value for one of the two");
      return false;
    }
    const Resource& resource =
        resources_.try_emplace(name, EmptyResource(rule, name, *place.slot->device)).first->second;
    if (resource.serve == rule.serve) return true;
    Refuse(place.slot->device, Code::kNameCollision, OtherwiseServed(resource), kServeRemedy);
    return false;
  }

  GroupPlan* GroupOf(const PciDevice& device) {
    for (GroupPlan& group : plan_.groups) {
      const bool lone = !group.group && group.members.front().address == device.address;
      if (device.group ? group.group == device.group : lone) return &group;
    }
    return nullptr;
  }

  void Conclude(MdevSlot& slot) {
    GroupPlan* const group = GroupOf(*slot.device);
    if (group->refusals.empty() && group->verdict != Verdict::kUnselected && !group->makes_mdevs) {
      Refuse(slot.device, Code::kForeignMember,
             absl::StrFormat("%s is in group %d, which resources[] gives away whole",
                             Spell(*slot.device), *group->group));
      TakeBackSteps(*group, plan_.resources);  // neither of the two gets it
      return HoldBack(slot, group->refusals.front());
    }
    for (Member& member : group->members) {
      if (member.address != slot.device->address) continue;
      member.role = Role::kPrimary;
      member.action = MemberAction::kKeep;
    }
    MeetRivals(slot);
    if (slot.IsSilent()) Refuse(slot.device, WhySilent(*slot.device, slot.parent->silent));
    group->makes_mdevs = group->refusals.empty();
    if (group->makes_mdevs && !JobKey(*group)) RefuseWide(*slot.device);
    if (!group->refusals.empty()) {
      group->actions.clear();
      return HoldBack(slot, group->refusals.front());
    }
    std::ranges::move(slot.actions, std::back_inserter(group->actions));
    group->verdict = group->actions.empty() ? Verdict::kBound : Verdict::kBind;
  }

  void RefuseWide(const PciDevice& device) {
    Refuse(
        &device, Code::kAddressTooWide,
        absl::StrFormat("%s has no IOMMU group and a domain of more than 15 bits", Spell(device)));
  }

  // Those that are there stay, and are served.
  void MeetRivals(const MdevSlot& slot) {
    VgpuRivals rivals = RivalsOf(context_, *slot.device, slot.uuids.size() > slot.actions.size());
    for (Refusal& warning : rivals.warnings) Warn(*slot.device, std::move(warning));
    if (!rivals.hinders || slot.actions.empty()) return;
    Refuse(slot.device, rivals.hinders->code, rivals.hinders->text, rivals.hinders->remedy);
  }

  // What is refused has no steps.
  void HoldBack(const MdevSlot& slot, const Refusal& why) {
    for (auto& entry : resources_) {
      for (Unit& unit : entry.second.units) {
        if (unit.primary != slot.parent->address || unit.state != UnitState::kToBind) continue;
        unit.state = UnitState::kRefused;
        unit.reason = ReasonOf(why);
      }
    }
  }

  void WarnOfShortage(const MdevPlace& place, int missing) {
    if (!place.slot->IsSilent()) Warn(*place.slot->device, MdevShortageOf(place, missing));
  }

  void Warn(const PciDevice& device, Refusal warning) {
    if (GroupPlan* const group = GroupOf(device)) group->warnings.push_back(warning);
    plan_.warnings.push_back(std::move(warning));
  }

  void RefuseType(const MdevCount& wanted, const std::vector<MdevSlot>& slots) {
    for (const MdevSlot& slot : slots) {
      Refuse(slot.device, Code::kVfioDriverMissing,
             absl::StrFormat("no parent has the type '%s'; %s has: %s", wanted.type,
                             slot.parent->address.ToString(), TypeNames(*slot.parent)),
             "write a name or directory of mdev_supported_types in mdev[].types");
    }
  }

  // In a group that gives something away it is a warning.
  void TellBarren(const MdevRule& rule, const std::vector<MdevSlot>& slots) {
    for (const PciDevice* device : FindBarren(context_, rule, slots)) {
      if (GroupOf(*device) == nullptr) plan_.groups.push_back(LoneGroup(*device));
      const Verdict verdict = GroupOf(*device)->verdict;
      const bool gives = verdict == Verdict::kBind || verdict == Verdict::kBound ||
                         std::ranges::any_of(slots, [device](const MdevSlot& slot) {
                           return device->group && slot.device->group == device->group;
                         });
      Refusal why = WhyBarren(context_, *device);
      gives ? Warn(*device, std::move(why)) : Refuse(device, std::move(why));
    }
  }

  void Refuse(const PciDevice* device, Code code, std::string text, std::string remedy = "") {
    Refuse(device, {.code = code, .text = std::move(text), .remedy = std::move(remedy)});
  }

  void Refuse(const PciDevice* device, Refusal refusal) {
    refusal.group = device->group;
    refusal.address = device->address;
    if (refusal.remedy.empty()) refusal.remedy = RemedyFor(refusal.code, device);
    if (GroupPlan* const group = GroupOf(*device)) {
      group->refusals.push_back(refusal);
      if (group->verdict == Verdict::kUnselected) group->verdict = Verdict::kRefused;
    }
    plan_.refusals.push_back(std::move(refusal));
  }

  const Context& context_;
  Plan& plan_;
  const Tenants tenants_;
  std::map<std::string, Resource> resources_;
  std::map<std::string, std::pair<std::string, std::string>> types_;  // by variable: type, name
};

bool IsPlannedAlone(const Plan& plan, const PciAddress& device) {
  return std::ranges::any_of(plan.groups, [&device](const GroupPlan& group) {
    return !group.group && std::ranges::count(group.members, device, &Member::address) > 0;
  });
}

// A parent needs no group: its instances have groups of their own. One that resources[] selects is
// there already.
void AddLoneParents(const NodeFacts& facts, Plan& plan) {
  for (const MdevParent& parent : facts.mdev.parents) {
    const PciDevice* const device = FindDevice(facts, parent.address);
    if (device == nullptr || device->group || device->IsBridge()) continue;
    if (IsPlannedAlone(plan, device->address)) continue;
    plan.groups.push_back(LoneGroup(*device));
  }
}

}  // namespace

void PlanMdevs(const Context& context, Plan& plan) {
  AddLoneParents(context.facts, plan);
  if (!context.policy.mdev.empty()) MdevPlanner(context, plan).Run();
}

}  // namespace vfio_agent
