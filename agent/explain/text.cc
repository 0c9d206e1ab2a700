#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "agent/commands/commands.h"
#include "agent/explain/explanation.h"

namespace vfio_agent {
namespace {

constexpr size_t kMostPorts = 8;  // of one kind in the text; the document has them all

std::string Join(const std::vector<PciAddress>& addresses) {
  return absl::StrJoin(addresses, ", ", [](std::string* out, const PciAddress& address) {
    out->append(address.ToString());
  });
}

std::string MembersText(const Explanation& explanation) {
  std::string text = explanation.plan.group ? "  members\n" : "  functions of its slot\n";
  for (const MemberNote& note : explanation.members) {
    const Member& member = note.member;
    text += absl::StrFormat("    %s  %-9s  driver %s%s  %s%s\n", member.address.ToString(),
                            Name(member.role), member.driver.value_or("(none)"),
                            member.to.empty() ? "" : " -> " + member.to, note.model,
                            note.blocks ? "  <- blocks" : "");
    if (!note.sriov.empty()) text += absl::StrFormat("      %s\n", note.sriov);
    for (const std::string& who : note.holders) text += absl::StrFormat("      held by %s\n", who);
    for (const std::string& use : note.uses) text += absl::StrFormat("      it %s\n", use);
    for (const std::string& error : note.errors) {
      text += absl::StrFormat("      could not be read: %s\n", error);
    }
  }
  return text;
}

std::string MdevsText(const Explanation& explanation) {
  std::string text;
  for (const MdevNote& note : explanation.mdevs) {
    text += absl::StrFormat(
        "    %s  group %s  type %s  made by %s%s\n", note.mdev.uuid,
        note.mdev.group ? absl::StrFormat("%d", *note.mdev.group) : "(none)",
        note.mdev.type.empty() ? "(unknown)" : note.mdev.type, note.own ? "vfio-agent" : "others",
        note.resource.empty() ? "" : absl::StrFormat("  %s, %s", note.resource, note.state));
    for (const std::string& who : note.holders) text += absl::StrFormat("      held by %s\n", who);
  }
  return text.empty() ? text : "  mediated devices\n" + text;
}

// Those of which there is more to say than that they are ready, and than the members' lines have
// said of who has them.
std::string UnitsText(const Explanation& explanation) {
  const bool told = std::ranges::any_of(
      explanation.members, [](const MemberNote& note) { return !note.holders.empty(); });
  std::string text;
  for (const UnitNote& note : explanation.units) {
    if (note.who.empty() || (told && note.state == Name(UnitState::kHeld))) continue;
    text += absl::StrFormat("    %s of %s, %s: %s\n", note.id, note.resource, note.state, note.who);
  }
  return text.empty() ? text : "  units\n" + text;
}

// Each endpoint's own line names the port; those of the bridges between would say the same again.
std::string MergesText(const Explanation& explanation) {
  if (explanation.members.size() < 2) return "";
  std::string text;
  const bool endpoints = std::ranges::count(explanation.merges, false, &MergeNote::bridge) > 0;
  for (const MergeNote& merge : explanation.merges) {
    if (!endpoints || !merge.bridge) text += "    " + merge.text + "\n";
  }
  for (const PciAddress& address : explanation.unknown) {
    text += absl::StrFormat("    %s: ACS on its way to the root is unknown (%s)\n",
                            address.ToString(), explanation.why_unreadable);
  }
  if (text.empty() && explanation.plan.group) {
    text = "    by the kernel; the ports' registers do not say why\n";
  }
  return text.empty() ? text : "  why together\n" + text;
}

std::string PathText(const DevicePath& path) {
  std::string text =
      absl::StrFormat("  path of %s\n    %s\n", path.device.ToString(),
                      path.root.empty() ? "(this tree tells no parents)" : path.root);
  for (size_t i = 0; i < path.steps.size(); ++i) {
    const PathStep& step = path.steps[i];
    const std::string indent(2 * (i + 1), ' ');
    text += absl::StrFormat("    %s%s  %s  %s: %s%s\n", indent, step.address.ToString(), step.id,
                            step.type, step.words, step.merges ? "  <- merges" : "");
    if (!step.bits.empty() && step.acs.verdict != AcsVerdict::kNotNeeded) {
      text += absl::StrFormat("    %s  ACSCtl: %s\n", indent, step.bits);
    }
  }
  return text;
}

// Of a selected group what is primary, else what is no bridge; of bridges alone these.
std::string PathsText(const Explanation& explanation) {
  const auto has = [&explanation](auto matches) {
    return std::ranges::any_of(explanation.plan.members, matches, &Member::role);
  };
  const bool selected = has([](Role role) { return role == Role::kPrimary; });
  const bool endpoints = has([](Role role) { return role != Role::kBridge; });
  std::string text;
  for (size_t i = 0; i < explanation.paths.size(); ++i) {
    const Role role = explanation.members[i].member.role;
    if (selected ? role != Role::kPrimary : endpoints && role == Role::kBridge) continue;
    text += PathText(explanation.paths[i]);
  }
  return text;
}

std::string RefusalsText(const char* heading, const std::vector<Refusal>& refusals) {
  std::string text;
  for (const Refusal& refusal : refusals) text += RefusalText(refusal, "    ");
  return text.empty() ? text : absl::StrFormat("  %s\n%s", heading, text);
}

std::string IfSelectedText(const Explanation& explanation) {
  if (!explanation.if_selected) return "";
  const IfSelected& what_if = *explanation.if_selected;
  const std::string select = absl::StrFormat("resources: [{select: [{address: \"%s\"}]%s}]",
                                             what_if.physical.value_or(what_if.device).ToString(),
                                             what_if.physical ? ", sriov: {}" : "");
  if (what_if.verdict == Verdict::kUnselected) {
    return absl::StrFormat(
        "  if it were selected (%s)\n    it would not be given away: mdev[].parent or "
        "vgpu[].parent "
        "has its card, which\n    stays with its driver, whatever resources[] says\n",
        select);
  }
  if (what_if.verdict != Verdict::kRefused) {
    const std::string but =
        what_if.mode.empty()
            ? ""
            : absl::StrFormat(", but not now: mode %s gives no whole devices to guests",
                              what_if.mode);
    return absl::StrFormat("  if it were selected (%s)\n    it could be given away%s\n", select,
                           but);
  }
  return RefusalsText(absl::StrFormat("if it were selected (%s)", select).c_str(),
                      what_if.refusals);
}

std::string ExpectedText(const Explanation& explanation) {
  if (!explanation.without_iommu) return "";
  std::string text = "  with the IOMMU on\n    ";
  if (!explanation.expected) {
    return text + "its group cannot be told from here: ACS or places are unknown\n";
  }
  if (explanation.expected->size() == 1) return text + "it would be alone in its group\n";
  return text + absl::StrFormat("its group would be %s\n", Join(*explanation.expected));
}

std::string PortText(const Move& move) {
  if (move.occupants.empty()) return move.port.ToString() + " (free)";
  return absl::StrFormat("%s (in exchange for %s)", move.port.ToString(), Join(move.occupants));
}

// Free ports first; not more than a person reads.
std::string PortsText(const Relocation& relocation, Move::Outcome outcome) {
  std::vector<std::string> ports;
  for (const bool free : {true, false}) {
    for (const Move& move : relocation.moves) {
      if (move.outcome == outcome && move.occupants.empty() == free)
        ports.push_back(PortText(move));
    }
  }
  if (ports.size() > kMostPorts) {
    const size_t more = ports.size() - kMostPorts;
    ports.resize(kMostPorts);
    ports.push_back(absl::StrFormat("and %d more (-o json)", more));
  }
  return absl::StrJoin(ports, ", ");
}

std::string RelocationText(const Explanation& explanation) {
  if (!explanation.relocation) return "";
  const Relocation& relocation = *explanation.relocation;
  std::string text = "  in another slot of this machine\n";
  if (!relocation.fixed.empty()) return text + "    it cannot move: " + relocation.fixed + "\n";
  const std::string alone = PortsText(relocation, Move::Outcome::kAlone);
  const std::string shared = PortsText(relocation, Move::Outcome::kShared);
  const std::string unknown = PortsText(relocation, Move::Outcome::kUnknown);
  if (!alone.empty()) text += "    it would be alone below " + alone + "\n";
  if (!shared.empty()) text += "    it would share its group below " + shared + "\n";
  if (!unknown.empty()) text += "    unknown below " + unknown + "\n";
  if (relocation.moves.empty()) return text + "    no other port of this machine is to be seen\n";
  return text +
         "    computed from the ports' registers; whether a slot is wired to a free port, and to "
         "ports\n    that the firmware hides, is not to be seen here\n";
}

std::string ListText(const char* heading, const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += "    " + line + "\n";
  return text.empty() ? text : absl::StrFormat("  %s\n%s", heading, text);
}

}  // namespace

std::string ExplanationText(const Explanation& explanation) {
  const GroupPlan& group = explanation.plan;
  const bool ready =
      std::ranges::all_of(explanation.units, [](const UnitNote& note) { return note.who.empty(); });
  std::string text = absl::StrFormat(
      "%s%s%s: %s\n", group.group ? absl::StrFormat("group %d", *group.group) : "no group",
      group.resource.empty() ? "" : ", ", group.resource, VerdictWords(group, ready));
  if (explanation.by_claims) text += absl::StrFormat("  %s\n", kByClaims);
  text += MembersText(explanation) + UnitsText(explanation) + MdevsText(explanation) +
          MergesText(explanation);
  text += PathsText(explanation) + RefusalsText("refused", group.refusals) +
          RefusalsText("warnings", group.warnings) + IfSelectedText(explanation) +
          ExpectedText(explanation) + RelocationText(explanation);
  std::vector<std::string> commands;
  for (const Action& action : group.actions) commands.push_back(ToShell(action));
  return text + ListText("memory", explanation.memory) + ListText("commands", commands) +
         ListText("to look closer", explanation.look);
}

}  // namespace vfio_agent
