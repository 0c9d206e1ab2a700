#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "agent/commands/commands.h"
#include "agent/exit_code.h"
#include "agent/explain/explanation.h"
#include "agent/listing/tables.h"
#include "iommu/bundle/egm.h"
#include "iommu/policy/selector.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

// What one SELECTOR means.
struct Answer {
  std::vector<GroupPlan> groups;
  std::optional<PciAddress> asked;  // where it is an address
  std::string resource;             // where it is the name of one
};

// Devices without a group have a plan only where they are selected: here they get one.
absl::StatusOr<Answer> Find(const Picture& picture, const std::string& text) {
  ASSIGN_OR_RETURN(const Target target, ReadTarget(picture, text));
  Answer answer{.asked = target.selector.address, .resource = target.resource};
  const auto groups = FindTargets(picture, {text});
  if (groups.ok()) {
    for (const GroupPlan* group : *groups) answer.groups.push_back(*group);
    return answer;
  }
  if (!target.resource.empty()) return groups.status();
  for (const PciDevice& device : picture.facts.devices) {
    if (device.group || !Matches(target.selector, device)) continue;
    const auto has = [&device](const GroupPlan& group) {
      return std::ranges::count(group.members, device.address, &Member::address) > 0;
    };
    if (std::ranges::any_of(answer.groups, has)) continue;
    answer.groups.push_back(LonePlan(picture.facts, device));
  }
  if (answer.groups.empty()) return groups.status();
  return answer;
}

// Bridges, and what is part of the chipset, nobody gives away. An NVSwitch is neither, though its
// class (0680) is a bridge's.
bool IsWorthSelecting(const PciDevice& device) {
  const uint32_t base = device.class_code >> 16;
  return !device.IsBridge() && base != 0x08 && (base != 0x06 || device.Class16() == 0x0680);
}

std::optional<IfSelected> TrySelected(Session& session, const Picture& picture,
                                      const GroupPlan& group,
                                      const std::optional<PciAddress>& asked) {
  // A physical function is selected already, for the sake of its virtual functions.
  if (group.verdict != Verdict::kUnselected || IsPhysical(group)) return std::nullopt;
  const std::optional<PciAddress> subject = SubjectOf(group, asked);
  if (!subject || !IsWorthSelecting(*FindDevice(picture.facts, *subject))) return std::nullopt;
  const std::optional<PciAddress> physical = FindDevice(picture.facts, *subject)->physfn;
  Policy policy = session.config().policy;
  policy.resources = {{.select = {{.address = physical.value_or(*subject)}}}};
  if (physical) policy.resources.front().sriov.emplace();
  const Config& config = session.config();
  const bool gives = UseIn(config.in_force, config.mode).devices;
  const Plan plan = session.PlanWith(policy, picture);
  for (const GroupPlan& planned : plan.groups) {
    if (std::ranges::count(planned.members, *subject, &Member::address) == 0) continue;
    return IfSelected{.device = *subject,
                      .physical = physical,
                      .verdict = planned.verdict,
                      .refusals = planned.refusals,
                      .mode = gives ? "" : std::string(Name(config.in_force))};
  }
  return std::nullopt;
}

// What the host does with those members that stand in the way.
UseFacts UsesOfForeign(Session& session, const Picture& picture, const GroupPlan& group) {
  std::vector<PciAddress> foreign;
  for (const Member& member : group.members) {
    if (member.role == Role::kForeign && member.driver) foreign.push_back(member.address);
  }
  return foreign.empty() ? UseFacts{} : session.UsesOf(foreign, picture);
}

std::vector<Explanation> ExplainAll(Session& session, const Picture& picture,
                                    const Answer& answer) {
  const Grouping grouping = ComputeGrouping(picture.facts);
  std::vector<Explanation> explanations;
  for (const GroupPlan& group : answer.groups) {
    const UseFacts uses = UsesOfForeign(session, picture, group);
    explanations.push_back(
        Explain({.picture = picture,
                 .grouping = grouping,
                 .uses = uses,
                 .if_selected = TrySelected(session, picture, group, answer.asked),
                 .copy = session.invocation().root != "/"},
                group));
  }
  return explanations;
}

const Resource* FindResource(const Picture& picture, const std::string& name) {
  const auto found = std::ranges::find(picture.plan.resources, name, &Resource::name);
  return found == picture.plan.resources.end() ? nullptr : &*found;
}

std::string ResourceText(const Plan& plan, const Resource& resource) {
  std::string text = absl::StrFormat("resource %s: %d unit%s\n", resource.name,
                                     resource.units.size(), resource.units.size() == 1 ? "" : "s");
  if (resource.serve == Serve::kDra) text += absl::StrFormat("  %s\n", kByClaims);
  for (const Unit& unit : resource.units) {
    const std::string why = WhoOrWhy(unit.pods, unit.reason, true);
    text +=
        absl::StrFormat("  %s  %s%s%s\n", unit.id, Name(unit.state), why.empty() ? "" : ": ", why);
    if (unit.addresses.size() > 1) text += absl::StrFormat("    is %s\n", PartsText(unit));
  }
  for (const std::vector<std::string>& set : resource.partitions) {
    text += absl::StrFormat("  together: %s\n", absl::StrJoin(set, " "));
  }
  if (!resource.partitions_fault.empty()) {
    text += absl::StrFormat("  only one at a time: %s\n", resource.partitions_fault);
  }
  for (const EgmShare& share : plan.egm) {
    if (share.resource == resource.name) text += absl::StrFormat("  %s\n", Spell(share));
  }
  return text;
}

// Of the plan's document the resources that were asked for.
Json ResourcesJson(const Picture& picture, const std::vector<Answer>& answers) {
  Json list = Json::array();
  const Json document = PlanToJson(picture.plan, false);
  for (const Json& resource : document.at("resources")) {
    const auto asked = [&resource](const Answer& answer) {
      return resource.at("name") == answer.resource;
    };
    if (std::ranges::any_of(answers, asked)) list.push_back(resource);
  }
  return list;
}

// One group that two selectors mean is told once. Functions without a group may share some members.
void Print(Session& session, const Picture& picture, const std::vector<Answer>& answers) {
  const Output output = session.invocation().output;
  Json list = Json::array();
  std::vector<PciAddress> told;
  for (const Answer& answer : answers) {
    const Resource* const resource = FindResource(picture, answer.resource);
    if (!IsDocument(output) && resource != nullptr) {
      PrintText(ResourceText(picture.plan, *resource));
    }
    for (const Explanation& explanation : ExplainAll(session, picture, answer)) {
      const std::vector<Member>& members = explanation.plan.members;
      const auto is_told = [&told](const Member& member) {
        return std::ranges::count(told, member.address) > 0;
      };
      if (std::ranges::all_of(members, is_told)) continue;
      for (const Member& member : members) told.push_back(member.address);
      if (!IsDocument(output)) PrintText(ExplanationText(explanation));
      list.push_back(ExplanationToJson(explanation));
    }
  }
  if (!IsDocument(output)) return;
  PrintDocument({{"schema", "vfio-agent/explain/v1"},
                 {"groups", list},
                 {"resources", ResourcesJson(picture, answers)}},
                output);
}

}  // namespace

int ExplainCommand(Session& session) {
  const std::unique_ptr<Picture> picture = TakeOrPrint(session);
  if (picture == nullptr) return kExitFailed;
  std::vector<Answer> answers;
  bool refused = false;
  for (const std::string& text : session.invocation().arguments) {
    absl::StatusOr<Answer> answer = Find(*picture, text);
    if (!answer.ok()) {
      PrintError(Message(answer.status()));
      return kExitUsage;
    }
    for (const GroupPlan& group : answer->groups) refused |= group.verdict == Verdict::kRefused;
    answers.push_back(*std::move(answer));
  }
  Print(session, *picture, answers);
  return session.invocation().exit_code && refused ? kExitRefused : kExitDone;
}

}  // namespace vfio_agent
