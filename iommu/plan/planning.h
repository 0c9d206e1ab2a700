// The inner steps of MakePlan, one file each: members.cc, rules.cc, guards.cc, steps.cc, sriov.cc,
// resources.cc; condition.h has a unit's state.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "iommu/plan/plan.h"

namespace vfio_agent {

// What planning knows besides the facts of one group.
struct Context {
  const NodeFacts& facts;
  const Policy& policy;
  const ModelNames& names;
  const Custody& custody;
};

// One group, or one selected device without a group, on its way through planning. The vectors
// run in parallel with `plan.members`.
struct Draft {
  GroupPlan plan;
  std::vector<const PciDevice*> devices;
  std::vector<const ResourceRule*> rules;  // the entry that selected the member, or null
  const ResourceRule* rule = nullptr;      // that of the first selected member
  // The entry with `sriov:` that selected the member as a physical function, or null.
  std::vector<const ResourceRule*> makers;
  bool needs_module = false;

  bool Selected() const { return rule != nullptr; }
};

// True for drivers under which a member does not spoil the group: vfio drivers, pci-stub and
// pcieport (the drivers that set driver_managed_dma). The latter has ports, which are bridges, and
// root-complex event collectors (class 0807), which are not.
bool IsVfioDriver(std::string_view driver);
bool IsHarmlessDriver(std::string_view driver);

// True for a device that a vfio driver has, whatever the driver's name: the kernel makes vfio-dev
// for it (since 6.1), and the known variants' names end alike.
bool IsOnVfio(const PciDevice& device);

// members.cc: the groups of the node with their members' roles.
std::vector<Draft> DraftGroups(const Context& context);

// rules.cc: every reason against a draft, and every warning, from the kernel's facts.
void ApplyRules(const Context& context, Draft& draft);

// guards.cc: the reasons that come from who uses what: the host, guests, other managers, and
// writes that have not returned.
void ApplyGuards(const Context& context, Draft& draft);

// guards.cc: other managers of vGPUs on `parent`: the first that keeps more of them from being
// made, unless guard.override has the parent; and those that are told of, which are the others, and
// all where it `has_some` already.
struct VgpuRivals {
  std::optional<Refusal> hinders;
  std::vector<Refusal> warnings;
};
VgpuRivals RivalsOf(const Context& context, const PciDevice& parent, bool has_some);

// steps.cc: verdict, members' actions and the steps to get there.
void PlanSteps(const Context& context, Draft& draft);

// The same of a group that is refused after its steps and its units were made: neither is done.
void TakeBackSteps(GroupPlan& group, std::vector<Resource>& resources);

// sriov.cc: the same of groups that are not selected but have physical functions that are.
bool MakesVfs(const Draft& draft, size_t i);  // member `i` has none yet and is to have some
void ApplyVfRules(const Context& context, Draft& draft);
void PlanVfs(Draft& draft);

// resources.cc: names' rules over all drafts (may add refusals), then the resources' units.
void RefuseBadNames(std::vector<Draft>& drafts);
std::vector<Resource> MakeResources(const std::vector<Draft>& drafts, const Context& context);

// The NUMA node that the kubelet is told of `device`.
std::optional<int> NumaNodeOf(const PciDevice& device, const ResourceRule& rule,
                              const NodeFacts& facts);
// `reason`, and where one of `groups` is of noiommu mode, that this is unsafe.
std::string WithUnsafe(std::string reason, const NodeFacts& facts, const std::vector<int>& groups);

// True for a member that binding the group would move to a vfio driver.
bool WillBind(const Draft& draft, size_t i);

// Refuses, unless guard.override has the member's address: then it is a warning that says so.
void RefuseUnlessOverruled(const Context& context, Draft& draft, Code code, const PciDevice& member,
                           std::string text, std::string remedy = "");

// The code's own remedy, with <address> replaced.
std::string RemedyFor(Code code, const PciDevice* member);

// remedies.cc: what to do where the facts decide it. Of a selected device without a group; of the
// foreign member `i`; of a physical function that has another number of VFs than `wanted`.
std::string NoGroupRemedy(const IommuFacts& iommu, const PciDevice& device);
std::string ForeignRemedy(const Draft& draft, size_t i);
std::string OtherNumberRemedy(const Custody& custody, const PciDevice& device, int wanted);

// Adds a refusal or warning with the code's own remedy; `member` may be null.
void Refuse(Draft& draft, Code code, const PciDevice* member, std::string text);
void Refuse(Draft& draft, Code code, const PciDevice* member, std::string text, std::string remedy);

// The name of the group's node below /dev/vfio: "26", or "noiommu-26" where nothing isolates it.
std::string GroupNodeName(const NodeFacts& facts, int group);

// "unbind-stuck: …": as a unit's reason.
std::string ReasonOf(const Refusal& why);

// "0000:01:00.0 (10de:2330, driver nvidia)": how texts name a device.
std::string Spell(const PciDevice& device);

}  // namespace vfio_agent
