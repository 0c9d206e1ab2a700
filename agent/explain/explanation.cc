#include "agent/explain/explanation.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_format.h"
#include "agent/commands/commands.h"
#include "agent/kubevirt/kubevirt.h"
#include "agent/listing/held.h"
#include "agent/text/pci_class.h"
#include "iommu/bundle/egm.h"
#include "iommu/mdev/mdev.h"
#include "iommu/plan/planning.h"

namespace vfio_agent {
namespace {

bool IsMember(const GroupPlan& group, const PciAddress& address) {
  return std::ranges::count(group.members, address, &Member::address) > 0;
}

// Merges between members. The kernel has fewer than the rule where it was told to (acs-override).
std::vector<Merge> MergesOf(const Grouping& grouping, const GroupPlan& group) {
  std::vector<Merge> merges;
  if (!group.group) return merges;
  std::ranges::copy_if(grouping.merges, std::back_inserter(merges), [&group](const Merge& merge) {
    return IsMember(group, merge.device) && IsMember(group, merge.with);
  });
  return merges;
}

std::string WhyUnreadable(const Surroundings& around) {
  return around.copy ? "not in this copy" : "needs CAP_SYS_ADMIN";
}

PathStep StepOf(const Surroundings& around, const PciDevice& device,
                const std::set<PciAddress>& culprits) {
  const AcsState acs = CheckAcs(device);
  const std::string why = acs.known() ? "" : absl::StrFormat(" (%s)", WhyUnreadable(around));
  return {.address = device.address,
          .id = absl::StrFormat("%04x:%04x", device.vendor, device.device),
          .type = PortWords(device),
          .acs = acs,
          .words = Describe(acs) + why,
          .bits = ControlBits(device),
          .merges = culprits.contains(device.address)};
}

DevicePath PathOf(const Surroundings& around, const PciDevice& device,
                  const std::set<PciAddress>& culprits) {
  DevicePath path{.device = device.address, .root = Printable(device.root)};
  for (const PciAddress& address : device.path) {
    const PciDevice* const port = FindDevice(around.picture.facts, address);
    if (port != nullptr) path.steps.push_back(StepOf(around, *port, culprits));
  }
  path.steps.push_back(StepOf(around, device, culprits));
  return path;
}

std::string SriovWords(const PciDevice& device) {
  if (device.physfn) {
    return absl::StrFormat("virtual function of %s", device.physfn->ToString());
  }
  const int total = device.sriov_total_vfs.value_or(0);
  if (total == 0 && device.virtfns.empty()) return "";
  return absl::StrFormat("physical function with %d of %d virtual functions", device.virtfns.size(),
                         total);
}

MemberNote NoteOf(const Surroundings& around, const GroupPlan& group, const Member& member) {
  const PciDevice& device = *FindDevice(around.picture.facts, member.address);
  MemberNote note{.member = member,
                  .errors = device.errors,
                  .holders = WhoHas(around.picture, member.address),
                  .sriov = SriovWords(device)};
  note.model = Printable(ModelOf(around.picture, device));
  if (note.model.empty()) note.model = std::string(ClassWords(device.class_code));
  note.blocks = std::ranges::any_of(group.refusals, [&member](const Refusal& refusal) {
    return refusal.code == Code::kForeignMember && refusal.address == member.address;
  });
  const auto uses = around.uses.devices.find(member.address);
  if (uses == around.uses.devices.end()) return note;
  for (const Use& use : uses->second) note.uses.push_back(Printable(use.text));
  return note;
}

// Somebody else's endpoints are there: another slot may be the way out.
bool HasCompany(const GroupPlan& group, const PciAddress& subject) {
  return group.group && std::ranges::any_of(group.members, [&subject](const Member& member) {
           return member.role != Role::kBridge && !SameSlot(member.address, subject);
         });
}

std::vector<MdevNote> MdevsOf(const Picture& picture, const GroupPlan& group) {
  std::vector<MdevNote> notes;
  for (const MdevInstance& mdev : picture.facts.mdev.instances) {
    if (!mdev.parent || !IsMember(group, *mdev.parent)) continue;
    MdevNote note{.mdev = mdev, .own = IsOwnMdev(mdev), .holders = WhoHasMdev(picture, mdev.uuid)};
    for (const Resource& resource : picture.plan.resources) {
      const auto unit = std::ranges::find(resource.units, mdev.uuid, &Unit::id);
      if (unit == resource.units.end()) continue;
      note.resource = resource.name;
      note.state = std::string(Name(unit->state));
    }
    notes.push_back(std::move(note));
  }
  return notes;
}

std::vector<UnitNote> UnitsOf(const Plan& plan, const GroupPlan& group) {
  std::vector<UnitNote> notes;
  for (const Resource& resource : plan.resources) {
    for (const Unit& unit : resource.units) {
      const std::vector<int> groups = GroupsOf(unit);
      const bool with_group = group.group && std::ranges::count(groups, *group.group) > 0;
      if (!unit.mdev_type.empty() || !(with_group || IsMember(group, unit.primary))) continue;
      notes.push_back({.id = unit.id,
                       .resource = resource.name,
                       .state = std::string(Name(unit.state)),
                       .who = WhoOrWhy(unit.pods, unit.reason, true)});
    }
  }
  return notes;
}

// Commands that show what the text speaks of.
std::vector<std::string> LookCommands(const Surroundings& around, const Explanation& explanation,
                                      const std::set<PciAddress>& culprits) {
  std::vector<std::string> commands;
  for (const PciAddress& port : culprits) {
    commands.push_back(absl::StrFormat("lspci -vvs %s | grep ACS", port.ToString()));
  }
  if (!explanation.unknown.empty() && !around.copy) {
    commands.push_back(
        absl::StrFormat("sudo vfio-agent explain %s", explanation.unknown.front().ToString()));
  }
  if (around.picture.facts.iommu.state != IommuState::kOn) {
    commands.emplace_back("cat /proc/cmdline");
  }
  if (!explanation.plan.group) {
    commands.emplace_back("dmesg | grep -i -e dmar -e amd-vi -e smmu -e iommu");
  }
  if (explanation.plan.group) {
    commands.push_back(
        absl::StrFormat("ls -l /sys/kernel/iommu_groups/%d/devices", *explanation.plan.group));
  }
  for (const MdevNote& note : explanation.mdevs) {
    if (note.mdev.group)
      commands.push_back(absl::StrFormat("fuser -v /dev/vfio/%d", *note.mdev.group));
  }
  // What stays with its driver has no node that a guest could have open.
  const GroupPlan& plan = explanation.plan;
  if (plan.verdict == Verdict::kBound && plan.group && !IsPhysical(plan) && !plan.makes_mdevs) {
    commands.push_back(
        absl::StrFormat("fuser -v /dev/vfio/%s", GroupNodeName(around.picture.facts, *plan.group)));
  }
  return commands;
}

std::vector<std::string> MemoryOf(const Plan& plan, const GroupPlan& group) {
  std::vector<std::string> lines;
  for (const EgmShare& share : plan.egm) {
    const bool is_its = std::ranges::any_of(
        share.gpus, [&group](const PciAddress& gpu) { return IsMember(group, gpu); });
    if (is_its) lines.push_back(Spell(share));
  }
  return lines;
}

// Of a group that is refused nothing is served.
bool IsByClaims(const Plan& plan, const GroupPlan& group) {
  const auto found = std::ranges::find(plan.resources, group.resource, &Resource::name);
  return group.verdict != Verdict::kRefused && found != plan.resources.end() &&
         found->serve == Serve::kDra;
}

}  // namespace

GroupPlan LonePlan(const NodeFacts& facts, const PciDevice& device) {
  GroupPlan plan;
  for (const PciDevice& other : facts.devices) {
    if (other.group || !SameSlot(other.address, device.address)) continue;
    plan.members.push_back({.address = other.address,
                            .vendor = other.vendor,
                            .device = other.device,
                            .class_code = other.class_code,
                            .driver = other.driver,
                            .role = other.IsBridge() ? Role::kBridge : Role::kForeign});
  }
  return plan;
}

std::optional<PciAddress> SubjectOf(const GroupPlan& group,
                                    const std::optional<PciAddress>& asked) {
  if (asked && IsMember(group, *asked)) return asked;
  for (const Role role : {Role::kPrimary, Role::kForeign}) {
    const auto found = std::ranges::find(group.members, role, &Member::role);
    if (found != group.members.end()) return found->address;
  }
  return std::nullopt;
}

Explanation Explain(const Surroundings& around, const GroupPlan& group) {
  const NodeFacts& facts = around.picture.facts;
  Explanation explanation{.plan = group,
                          .by_claims = IsByClaims(around.picture.plan, group),
                          .why_unreadable = WhyUnreadable(around),
                          .if_selected = around.if_selected};
  std::set<PciAddress> culprits;
  for (const Merge& merge : MergesOf(around.grouping, group)) {
    const bool bridge = FindDevice(facts, merge.device)->IsBridge();
    explanation.merges.push_back({.text = ExplainMerge(facts, merge), .bridge = bridge});
    culprits.insert(merge.culprit);
  }
  explanation.mdevs = MdevsOf(around.picture, group);
  explanation.units = UnitsOf(around.picture.plan, group);
  for (const Member& member : group.members) {
    explanation.members.push_back(NoteOf(around, group, member));
    if (member.role != Role::kBridge &&
        std::ranges::count(around.grouping.unknown, member.address) > 0) {
      explanation.unknown.push_back(member.address);
    }
  }
  for (const Member& member : group.members) {
    explanation.paths.push_back(PathOf(around, *FindDevice(facts, member.address), culprits));
  }
  const std::optional<PciAddress> subject = SubjectOf(
      group, around.if_selected ? std::optional(around.if_selected->device) : std::nullopt);
  explanation.without_iommu = !group.group && facts.iommu.state != IommuState::kOn;
  if (subject && explanation.without_iommu) {
    explanation.expected = ComputedCompany(WithAcsOn(facts), *subject);
  }
  if (subject && HasCompany(group, *subject)) {
    explanation.relocation = SimulateMoves(facts, *FindDevice(facts, *subject));
  }
  explanation.look = LookCommands(around, explanation, culprits);
  explanation.memory = MemoryOf(around.picture.plan, group);
  return explanation;
}

}  // namespace vfio_agent
