// Planning: what would have to be done to a node so that guests can have its devices, and
// whether that may be done at all. Pure functions of values: no clock, no file, no log.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "iommu/code.h"
#include "iommu/plan/action.h"
#include "iommu/policy/policy.h"
#include "iommu/tenancy/custody.h"
#include "sysfs/node_facts.h"

namespace vfio_agent {

struct Refusal {
  Code code = Code::kForeignMember;
  std::optional<int> group;
  std::optional<PciAddress> address;
  std::string text;        // a whole sentence for a person
  std::string remedy;      // what to do next
  bool overruled = false;  // a warning that would be a refusal, but for guard.override
  bool operator==(const Refusal&) const = default;
};

enum class Verdict { kBind, kBound, kRefused, kUnselected };
// kPhysical: gives its virtual functions away and stays with the host itself.
enum class Role { kPrimary, kCompanion, kAllowed, kForeign, kBridge, kPhysical };
enum class MemberAction { kBind, kKeep, kNone };

struct Member {
  PciAddress address;
  uint16_t vendor = 0;
  uint16_t device = 0;
  uint32_t class_code = 0;
  std::optional<std::string> driver;
  Role role = Role::kForeign;
  MemberAction action = MemberAction::kNone;
  std::string to;  // the vfio driver, where action is kBind
  bool operator==(const Member&) const = default;
};

struct GroupPlan {
  // nullopt: a selected device without a group, or a parent of mediated devices without one.
  std::optional<int> group;
  Verdict verdict = Verdict::kUnselected;
  std::string resource;  // empty where unselected
  std::vector<Member> members;
  std::vector<Action> actions;    // in order; empty unless the verdict is kBind
  std::vector<Refusal> refusals;  // all of them; if there is one, there are no actions
  std::vector<Refusal> warnings;
  // It has a parent of mediated devices: kBind makes what is missing, kBound has all; nothing of
  // the group itself is given away.
  bool makes_mdevs = false;
  // Of a virtual function that is a vGPU, or is to be one: its type's id. The function stays with
  // its driver; kBind sets the type, kBound has it.
  std::string vgpu_type;
  bool operator==(const GroupPlan&) const = default;
};

enum class UnitState { kToBind, kReady, kHeld, kWithheld, kUnhealthy, kRefused };

// How `Unit::reason` begins, or goes on, where nothing isolates the unit's user.
inline constexpr std::string_view kUnsafe = "noiommu: UNSAFE";

// What one kubelet device id stands for.
struct Unit {
  std::string id;  // address of the primary function, or a mediated device's uuid
  PciAddress primary;
  // What the answer names: `primary`, and with sharedGroup: unit the group's other primaries.
  std::vector<PciAddress> addresses;
  std::optional<int> group;
  std::optional<int> numa_node;
  UnitState state = UnitState::kRefused;
  // Why it is not ready, in a sentence, or that it is unsafe; else empty.
  std::string reason;
  std::vector<PodClaim> pods;  // who has it, as the kubelet says
  // Withheld from others: a pod has it, and may start with it again.
  bool kept = false;
  // Of a unit that is several groups: all of them, sorted; `group` is that of `primary`. Empty for
  // a unit of one group.
  std::vector<int> groups;
  // Of a bundle: which device of another kind is meant for which of the first, "GPU, NIC".
  std::vector<std::pair<PciAddress, PciAddress>> pairs;
  // Of a mediated device, the type's id: `id` is its uuid then, `primary` its parent, which no
  // guest gets, and there are no `addresses`. Empty for PCI functions.
  std::string mdev_type;
  // Of a vGPU that is a virtual function, the type's id: "1145".
  std::string vgpu_type;
  std::string type_name;  // of either of the two, as its driver calls the type: "GRID T4-1Q"
  bool operator==(const Unit&) const = default;
};

// Every group of the unit: none, one or several.
std::vector<int> GroupsOf(const Unit& unit);

struct Resource {
  std::string name;
  uint16_t vendor = 0;
  uint16_t device = 0;
  bool numa = true;
  std::vector<Unit> units;  // sorted by address
  // The sets of ids, each sorted, in which several units may be given; empty: any.
  std::vector<std::vector<std::string>> partitions;
  bool only_partitions = false;  // a single unit, too, only where it is one of the sets
  std::string partitions_fault;  // why the table does not fit the units; then there are no sets
  Serve serve = Serve::kDevicePlugin;
  bool operator==(const Resource&) const = default;
};

// Whom a region of Extended GPU Memory can be given to: a container that has all of its GPUs.
struct EgmShare {
  std::string node;                // "/dev/egm4"
  std::vector<PciAddress> gpus;    // sorted; empty where they are not known
  std::string resource;            // whose units the GPUs are; empty: nobody can have it
  std::vector<std::string> units;  // their ids, sorted: as many as one container must ask for
  std::string why;                 // nobody can have it: a sentence
  bool operator==(const EgmShare&) const = default;
};

// What an Inquiry has to look at before anything of the plan may be written.
struct Question {
  std::vector<PciAddress> unbound;     // would be taken from a host driver
  std::vector<PciAddress> overridden;  // would have their driver_override written
  std::vector<int> groups;             // would be written to
  bool empty() const { return groups.empty(); }
  bool operator==(const Question&) const = default;
};

struct Plan {
  IommuFacts iommu;
  bool acs_override = false;
  std::vector<GroupPlan> groups;  // by number; those without a group last
  std::vector<Resource> resources;
  std::vector<Refusal> refusals;
  std::vector<Refusal> warnings;
  // Also of groups that are refused already: what is refused is refused for all its reasons.
  Question question;
  std::vector<EgmShare> egm;  // by the node's number
  bool operator==(const Plan&) const = default;
};

// Model names of devices: "GH100 [H100 SXM5 80GB]" by vendor and device, from pci.ids.
using ModelNames = std::map<std::pair<uint16_t, uint16_t>, std::string>;

// The plan for the whole node: every group, also the unselected ones.
//
// A group is bound whole or not at all, and what is refused is refused for all its reasons.
// Bridges are skipped: the kernel counts a port bound to pcieport, or to nothing, as safe
// (drivers/pci/pcie/portdrv.c sets driver_managed_dma).
//
// Without custody.inquiry the guards are silent: such a plan is a draft, whose question tells what
// to look at. Nothing of it may be carried out.
Plan MakePlan(const NodeFacts& facts, const Policy& policy, const ModelNames& names,
              const Custody& custody = {});

// What to do where no IOMMU is on: in the firmware, or where the virtual machine is defined.
std::string IommuRemedy(const IommuFacts& iommu);

// "4 virtual functions of 0000:3b:00.0 are to be made for nvidia.com/vf": they are no units yet.
// One sentence for each physical function of the group.
std::vector<std::string> TellVfsToMake(const GroupPlan& group);
std::vector<std::string> TellVfsToMake(const Plan& plan);

// True where nothing isolates guests and something is served all the same: resources[].noiommu.
bool ServesUnsafe(const Plan& plan);

// True for groups of physical functions that keep their driver and give virtual functions away.
bool IsPhysical(const GroupPlan& group);

std::string_view Name(Verdict verdict);
std::string_view Name(Role role);
std::string_view Name(MemberAction action);
std::string_view Name(UnitState state);
std::string_view Name(IommuState state);
std::string_view Name(IommuKind kind);
std::string_view Name(Serve serve);

}  // namespace vfio_agent
