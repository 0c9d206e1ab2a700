#include "iommu/mdev.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "absl/strings/str_format.h"
#include "iommu/condition.h"
#include "iommu/naming.h"
#include "iommu/spread.h"

namespace vfio_agent {
namespace {

// A parent of one entry, and what is planned for it.
struct Slot {
  const MdevParent* parent = nullptr;
  const PciDevice* device = nullptr;
  std::vector<std::string> uuids;  // instances that are there or planned, whoever made them
  std::vector<Action> actions;
  std::set<std::string> types;  // ids of those that the entry has named so far
};

// One type on one parent.
struct Place {
  Slot* slot = nullptr;
  const MdevType* type = nullptr;
  int have = 0;
  int room = 0;
  PciAddress Address() const { return slot->parent->address; }
  std::optional<int> Node() const { return slot->device->numa_node; }
};

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
    std::vector<Slot> slots = SlotsOf(rule);
    if (slots.empty()) return RefuseWithoutParent(rule);
    for (const MdevCount& wanted : rule.types) {
      std::vector<Place> places = PlacesOf(wanted.type, slots);
      if (places.empty()) RefuseType(wanted, slots);
      std::erase_if(places, [&](const Place& place) { return !NameResource(rule, place); });
      if (places.empty()) continue;
      for (const Place& place : places) OfferInstances(rule, place);
      Deal(rule, wanted, places);
    }
    for (Slot& slot : slots) Conclude(slot);
  }

  std::vector<Slot> SlotsOf(const MdevRule& rule) const {
    std::vector<Slot> slots;
    for (const MdevParent& parent : context_.facts.mdev.parents) {
      const PciDevice* const device = FindDevice(context_.facts, parent.address);
      if (device == nullptr || FindMdevRule(context_.policy, *device) != &rule) continue;
      Slot slot{.parent = &parent, .device = device};
      for (const MdevInstance& mdev : context_.facts.mdev.instances) {
        if (mdev.parent == parent.address) slot.uuids.push_back(mdev.uuid);
      }
      slots.push_back(std::move(slot));
    }
    return slots;
  }

  std::vector<Place> PlacesOf(const std::string& wanted, std::vector<Slot>& slots) const {
    std::vector<Place> places;
    for (Slot& slot : slots) {
      const MdevType* const type = FindMdevType(*slot.parent, wanted);
      if (type == nullptr) continue;
      const auto have =
          std::ranges::count_if(context_.facts.mdev.instances, [&](const MdevInstance& mdev) {
            return mdev.parent == slot.parent->address && mdev.type == type->id;
          });
      places.push_back({.slot = &slot,
                        .type = type,
                        .have = static_cast<int>(have),
                        .room = slot.device->group ? type->available.value_or(0) : 0});
    }
    return places;
  }

  void Deal(const MdevRule& rule, const MdevCount& wanted, std::vector<Place>& places) {
    DealOut(
        rule.spread, wanted.count, places, [&](Place& place) { Create(rule, place); },
        [this](const Place& place, int missing) { WarnOfShortage(place, missing); });
  }

  void Create(const MdevRule& rule, Place& place) {
    Slot& slot = *place.slot;
    const std::string uuid = FreeMdevUuid(slot.parent->address, place.type->id, slot.uuids);
    slot.uuids.push_back(uuid);
    slot.actions.push_back(CreateMdev{slot.parent->address, place.type->id, uuid});
    --place.room;
    ++place.have;
    Add(rule, place, {.id = uuid, .state = UnitState::kToBind, .reason = "waits to be created"});
  }

  void OfferInstances(const MdevRule& rule, const Place& place) {
    for (const MdevInstance& mdev : context_.facts.mdev.instances) {
      if (mdev.parent != place.slot->parent->address || mdev.type != place.type->id) continue;
      Unit unit{.id = mdev.uuid, .group = mdev.group, .pods = tenants_.PodsOf(mdev.uuid)};
      const Condition condition =
          ConditionOfMdev(mdev, MdevResourceName(rule, *place.type), unit.pods, tenants_,
                          context_.facts, context_.policy);
      unit.state = condition.state;
      unit.reason = condition.reason;
      Add(rule, place, std::move(unit));
    }
  }

  void Add(const MdevRule& rule, const Place& place, Unit unit) {
    unit.primary = place.slot->parent->address;
    unit.numa_node = place.slot->device->numa_node;
    unit.mdev_type = place.type->id;
    unit.type_name = MdevTypeName(*place.type);
    const std::string name = MdevResourceName(rule, *place.type);
    if (GroupPlan* const group = GroupOf(*place.slot);
        group != nullptr && group->resource.empty()) {
      group->resource = name;
    }
    resources_.at(name).units.push_back(std::move(unit));
  }

  // False where it could not be told from another.
  bool NameResource(const MdevRule& rule, const Place& place) {
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

  GroupPlan* GroupOf(const Slot& slot) {
    for (GroupPlan& group : plan_.groups) {
      if (slot.device->group && group.group == slot.device->group) return &group;
    }
    return nullptr;
  }

  void Conclude(Slot& slot) {
    GroupPlan* const group = GroupOf(slot);
    if (group == nullptr) {
      return Refuse(slot.device, Code::kNoIommuGroup,
                    absl::StrFormat("%s has no IOMMU group: no mediated device is made on it",
                                    Spell(*slot.device)));
    }
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
    if (!group->refusals.empty()) return HoldBack(slot, group->refusals.front());
    group->makes_mdevs = true;
    std::ranges::move(slot.actions, std::back_inserter(group->actions));
    group->verdict = group->actions.empty() ? Verdict::kBound : Verdict::kBind;
  }

  // Those that are there stay, and are served.
  void MeetRivals(const Slot& slot) {
    VgpuRivals rivals = RivalsOf(context_, *slot.device, slot.uuids.size() > slot.actions.size());
    for (Refusal& warning : rivals.warnings) Warn(slot, std::move(warning));
    if (!rivals.hinders || slot.actions.empty()) return;
    Refuse(slot.device, rivals.hinders->code, rivals.hinders->text, rivals.hinders->remedy);
  }

  // What is refused has no steps.
  void HoldBack(const Slot& slot, const Refusal& why) {
    for (auto& entry : resources_) {
      for (Unit& unit : entry.second.units) {
        if (unit.primary != slot.parent->address || unit.state != UnitState::kToBind) continue;
        unit.state = UnitState::kRefused;
        unit.reason = absl::StrFormat("%s: %s", CodeName(why.code), why.text);
      }
    }
  }

  void WarnOfShortage(const Place& place, int missing) {
    Refusal warning{
        .code = Code::kProbeRefused,
        .group = place.slot->device->group,
        .address = place.slot->parent->address,
        .text = absl::StrFormat("%d more of type %s (%s) are wanted than the kernel has room for",
                                missing, MdevTypeName(*place.type), place.type->id),
        .remedy =
            "lower the count in mdev[].types, or remove instances of other types: see "
            "available_instances below mdev_supported_types"};
    Warn(*place.slot, std::move(warning));
  }

  void Warn(const Slot& slot, Refusal warning) {
    if (GroupPlan* const group = GroupOf(slot)) group->warnings.push_back(warning);
    plan_.warnings.push_back(std::move(warning));
  }

  void RefuseType(const MdevCount& wanted, const std::vector<Slot>& slots) {
    for (const Slot& slot : slots) {
      Refuse(slot.device, Code::kVfioDriverMissing,
             absl::StrFormat("no parent has the type '%s'; %s has: %s", wanted.type,
                             slot.parent->address.ToString(), TypeNames(*slot.parent)),
             "write a name or directory of mdev_supported_types in mdev[].types");
    }
  }

  void RefuseWithoutParent(const MdevRule& rule) {
    for (const PciDevice& device : context_.facts.devices) {
      if (FindMdevRule(context_.policy, device) != &rule) continue;
      return Refuse(&device, Code::kVfioDriverMissing,
                    absl::StrFormat("%s makes no mediated devices: its driver shows no "
                                    "mdev_supported_types",
                                    Spell(device)),
                    "install the vendor's driver for vGPU hosts; on GPUs with SR-IOV the parents "
                    "are VFs: switch them on (sriov-manage -e <address>)");
    }
  }

  void Refuse(const PciDevice* device, Code code, std::string text, std::string remedy = "") {
    Refusal refusal{.code = code,
                    .group = device->group,
                    .address = device->address,
                    .text = std::move(text),
                    .remedy = remedy.empty() ? RemedyFor(code, device) : std::move(remedy)};
    for (GroupPlan& group : plan_.groups) {
      if (!device->group || group.group != device->group) continue;
      group.refusals.push_back(refusal);
      if (group.verdict == Verdict::kUnselected) group.verdict = Verdict::kRefused;
    }
    plan_.refusals.push_back(std::move(refusal));
  }

  const Context& context_;
  Plan& plan_;
  const Tenants tenants_;
  std::map<std::string, Resource> resources_;
  std::map<std::string, std::pair<std::string, std::string>> types_;  // by variable: type, name
};

}  // namespace

void PlanMdevs(const Context& context, Plan& plan) {
  if (!context.policy.mdev.empty()) MdevPlanner(context, plan).Run();
}

}  // namespace vfio_agent
