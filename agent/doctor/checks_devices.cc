// Checks of the devices that are to be given away: what the plan refuses and warns of, sorted by
// what a person looks for.
#include <algorithm>
#include <array>
#include <map>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "agent/doctor/checks.h"

namespace vfio_agent {
namespace {

struct CodeRow {
  std::string_view fine;  // what there is to say when no code of the row was found
  std::vector<Code> codes;
};

constexpr size_t kMostNamed = 4;
constexpr char kUnread[] = "PCI devices cannot be read: ";

// "group 14, 0000:02:00.0".
std::string Where(const Refusal& refusal) {
  std::vector<std::string> parts;
  if (refusal.group) parts.push_back(absl::StrFormat("group %d", *refusal.group));
  if (refusal.address) parts.push_back(refusal.address->ToString());
  return absl::StrJoin(parts, ", ");
}

// These wait for a guest, were asked for, or pass by themselves: nobody has to be woken.
bool IsPatient(const Refusal& refusal, const Picture& picture) {
  const bool at_work = refusal.code == Code::kForeignManager && refusal.group &&
                       picture.custody.underway.elsewhere.contains(*refusal.group);
  return at_work || refusal.code == Code::kHeld || refusal.code == Code::kGroupSplit ||
         refusal.code == Code::kExcluded;
}

// One finding for all refusals with the same code: eight cards with one cause are one line.
Finding Merge(const std::vector<const Refusal*>& same, bool warning) {
  const Refusal& first = *same.front();
  const std::string where = Where(first);
  std::string read = where.empty() ? first.text : where + ": " + first.text;
  std::vector<std::string> others;
  for (size_t i = 1; i < std::min(same.size(), kMostNamed); ++i) others.push_back(Where(*same[i]));
  if (!others.empty()) {
    read += absl::StrFormat("; and %d more of this kind: %s%s", same.size() - 1,
                            absl::StrJoin(others, "; "), same.size() > kMostNamed ? "; …" : "");
  }
  if (first.overruled) read += " (overruled by guard.override)";
  return {.state = warning ? State::kWarn : State::kFail,
          .read = std::move(read),
          .remedy = first.remedy,
          .code = first.code};
}

void AddFindings(const Picture& picture, const CodeRow& row, bool warnings, Findings& findings) {
  const Plan& plan = picture.plan;
  for (const Code code : row.codes) {
    std::vector<const Refusal*> same;
    for (const Refusal& refusal : warnings ? plan.warnings : plan.refusals) {
      if (refusal.code == code) same.push_back(&refusal);
    }
    if (same.empty()) continue;
    const bool patient = std::ranges::all_of(
        same, [&](const Refusal* refusal) { return IsPatient(*refusal, picture); });
    findings.push_back(Merge(same, warnings || patient));
  }
}

Findings ByCode(const DoctorFacts& facts, const CodeRow& row) {
  if (!facts.picture) return {Unknown(kUnread + facts.picture_error)};
  Findings findings;
  AddFindings(*facts.picture, row, false, findings);
  AddFindings(*facts.picture, row, true, findings);
  if (findings.empty()) findings.push_back(Ok(std::string(row.fine)));
  return findings;
}

Findings Reading(const DoctorFacts& facts) {
  if (!facts.picture) {
    return {Fail(facts.picture_error,
                 "mount the host's /sys into the pod; with --root, see that "
                 "the copy has sys/bus/pci/devices")};
  }
  Findings findings = {
      Ok(absl::StrFormat("%d PCI functions", facts.picture->facts.devices.size()))};
  constexpr size_t kMostNotes = 8;
  for (size_t i = 0; i < std::min(facts.notes.size(), kMostNotes); ++i) {
    findings.push_back(Warn(facts.notes[i], ""));
  }
  if (facts.notes.size() > kMostNotes) {
    findings.push_back(
        Warn(absl::StrFormat("and %d more of these", facts.notes.size() - kMostNotes),
             "vfio-agent plan names them all"));
  }
  return findings;
}

std::string SpellUnits(const Resource& resource) {
  std::map<UnitState, int> counts;
  for (const Unit& unit : resource.units) ++counts[unit.state];
  std::vector<std::string> parts;
  for (const auto& [state, count] : counts) {
    parts.push_back(absl::StrFormat("%d %s", count, Name(state)));
  }
  return absl::StrFormat("%s: %s", resource.name, absl::StrJoin(parts, ", "));
}

// Its reason begins with a code, "aer-fatal: …", which is told apart here.
Finding JudgeUnhealthy(const Unit& unit) {
  const std::optional<Code> code = FindCode(unit.reason);
  std::string_view why = unit.reason;
  if (code && why.starts_with(CodeName(*code))) {
    why.remove_prefix(std::min(CodeName(*code).size() + 2, why.size()));
  }
  // A machine that was started by hand is nothing that is broken.
  return {.state = code == Code::kInUseHolder ? State::kWarn : State::kFail,
          .read = absl::StrFormat("unit %s: %s", unit.id, why),
          .remedy = code ? std::string(DefaultRemedy(*code)) : "vfio-agent explain " + unit.id,
          .code = code};
}

// Of what the configuration asks for: what it excludes is told as a refusal, too.
Finding TellOffered(const Plan& plan, std::vector<std::string> offered) {
  const std::vector<std::string> to_make = TellVfsToMake(plan);
  const bool none = to_make.empty() && std::ranges::all_of(plan.resources, [](const Resource& one) {
                      return std::ranges::all_of(one.units, [](const Unit& unit) {
                        return unit.state == UnitState::kRefused;
                      });
                    });
  const bool asked = std::ranges::any_of(
      plan.refusals, [](const Refusal& refusal) { return refusal.code != Code::kExcluded; });
  offered.insert(offered.end(), to_make.begin(), to_make.end());
  std::string read = absl::StrJoin(offered, "; ");
  if (none) read = read.empty() ? "no device can be offered" : read + ": none can be offered";
  if (!none || !asked) return Ok(std::move(read));
  return Warn(std::move(read), "see what is refused below; vfio-agent explain ADDRESS says it all");
}

Findings Selection(const DoctorFacts& facts) {
  if (!facts.picture) return {Unknown(kUnread + facts.picture_error)};
  if (!facts.passthrough) {
    return {
        Warn("mode is container: nothing is given to machines",
             "set mode: vm-passthrough in the configuration, or the node's label that decides")};
  }
  std::vector<std::string> offered;
  Findings findings;
  for (const Resource& resource : facts.picture->plan.resources) {
    offered.push_back(SpellUnits(resource));
    for (const Unit& unit : resource.units) {
      if (unit.state != UnitState::kUnhealthy) continue;
      findings.push_back(JudgeUnhealthy(unit));
    }
  }
  const auto selected = [](const GroupPlan& group) {
    return group.verdict != Verdict::kUnselected;
  };
  if (std::ranges::none_of(facts.picture->plan.groups, selected)) {
    return {Warn("the configuration selects no device of this node",
                 absl::StrFormat("vfio-agent list --all shows what there is; %s chooses",
                                 facts.vgpu ? "mdev[].parent" : "resources[].select"))};
  }
  findings.insert(findings.begin(), TellOffered(facts.picture->plan, std::move(offered)));
  return findings;
}

// The ranges of the console are refused as in-use-display only where the card would be unbound; a
// card that is bound already has the same trouble.
Findings Display(const DoctorFacts& facts) {
  Findings findings = ByCode(
      facts, {"no selected card is the console's", {Code::kInUseDisplay, Code::kBootDisplay}});
  if (!facts.picture || findings.front().state != State::kOk) return findings;
  for (const GroupPlan& group : facts.picture->plan.groups) {
    if (group.verdict == Verdict::kUnselected) continue;
    for (const Member& member : group.members) {
      if (member.role == Role::kPhysical) continue;  // stays with the host, console and all
      const auto buffer = facts.picture->facts.frame_buffers.find(member.address);
      if (buffer == facts.picture->facts.frame_buffers.end()) continue;
      findings.push_back(Warn(member.address.ToString() + " " + buffer->second.text,
                              buffer->second.remedy, Code::kInUseDisplay));
    }
  }
  return findings;
}

Findings Groups(const DoctorFacts& facts) {
  return ByCode(facts, {"no selected group has a member that stands in the way",
                        {Code::kIommuOff, Code::kNoIommuGroup, Code::kNoiommu, Code::kForeignMember,
                         Code::kGroupChanged, Code::kExcluded}});
}
Findings Isolation(const DoctorFacts& facts) {
  return ByCode(facts,
                {"no selected group is finer than the hardware allows", {Code::kAcsOverride}});
}
Findings HostUse(const DoctorFacts& facts) {
  return ByCode(facts, {"the host uses no selected device",
                        {Code::kInUseNetwork, Code::kInUseStorage, Code::kInUseHolder,
                         Code::kPfHasVfs, Code::kVfNeedsOptIn, Code::kForeignManager}});
}
Findings Reserved(const DoctorFacts& facts) {
  return ByCode(facts, {"the firmware keeps no memory of a selected device", {Code::kRmrrDirect}});
}
Findings Reset(const DoctorFacts& facts) {
  return ByCode(facts, {"each selected device has a reset of its own",
                        {Code::kNoReset, Code::kSharedBusReset}});
}
Findings Power(const DoctorFacts& facts) {
  return ByCode(
      facts, {"each selected device answers",
              {Code::kPowerD3cold, Code::kConfigUnreadable, Code::kDeviceGone, Code::kAerFatal}});
}
Findings Binding(const DoctorFacts& facts) {
  return ByCode(facts, {"nothing hinders it",
                        {Code::kVfioDriverMissing, Code::kOverrideUnsupported,
                         Code::kPermissionDenied, Code::kProbeRefused, Code::kNodeMissing,
                         Code::kDriverChanged, Code::kUnbindTimeout, Code::kUnbindStuck}});
}
Findings Names(const DoctorFacts& facts) {
  return ByCode(facts, {"the kubelet and KubeVirt can use all of them",
                        {Code::kAddressTooWide, Code::kNameCollision, Code::kNameInvalid}});
}
Findings Guests(const DoctorFacts& facts) {
  return ByCode(facts, {"none stands in the way", {Code::kHeld, Code::kGroupSplit}});
}

constexpr std::array kChecks = std::to_array<Check>({
    {Layer::kDevices, "reading", Reading},
    {Layer::kDevices, "selection", Selection},
    {Layer::kDevices, "groups", Groups},
    {Layer::kDevices, "isolation", Isolation},
    {Layer::kDevices, "host use", HostUse},
    {Layer::kDevices, "display", Display},
    {Layer::kDevices, "reserved memory", Reserved},
    {Layer::kDevices, "reset", Reset},
    {Layer::kDevices, "power and bus", Power},
    {Layer::kDevices, "binding", Binding},
    {Layer::kDevices, "guests", Guests},
    {Layer::kDevices, "names", Names},
});

}  // namespace

std::span<const Check> DeviceChecks() { return kChecks; }

}  // namespace vfio_agent
