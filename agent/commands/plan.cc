#include <algorithm>

#include "absl/strings/str_format.h"
#include "agent/commands/commands.h"
#include "agent/exit_code.h"
#include "agent/listing/tables.h"
#include "agent/mode/mode_return.h"
#include "agent/text/json.h"
#include "iommu/bundle/egm.h"
#include "iommu/vgpu/vgpu.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

long CountVerdict(const Plan& plan, Verdict verdict) {
  return std::ranges::count(plan.groups, verdict, &GroupPlan::verdict);
}

std::string MemberLine(const Member& member) {
  const std::string driver = member.driver.value_or("(no driver)");
  const std::string change =
      member.action == MemberAction::kBind ? driver + " -> " + member.to : driver;
  return absl::StrFormat("#   %s  %04x:%04x  %06x  %-9s  %s\n", member.address.ToString(),
                         member.vendor, member.device, member.class_code, Name(member.role),
                         change);
}

std::string GroupTitle(const GroupPlan& group) {
  return group.group ? absl::StrFormat("group %d", *group.group) : "no group";
}

std::string GroupText(const GroupPlan& group) {
  std::string text = absl::StrFormat("\n# %s: %s%s%s\n", GroupTitle(group), Name(group.verdict),
                                     group.resource.empty() ? "" : " ", group.resource);
  if (group.makes_mdevs) text += "#   keeps its driver, which makes mediated devices\n";
  if (TakesVgpuAway(group)) {
    text += "#   keeps its driver; its vGPU type, more than vgpu[].types asks for, is taken away\n";
  } else if (!group.vgpu_type.empty()) {
    text += absl::StrFormat("#   keeps its driver; vGPU type %s\n", group.vgpu_type);
  }
  for (const Member& member : group.members) text += MemberLine(member);
  for (const Action& action : group.actions) text += ToShell(action) + "\n";
  return text;
}

// What no group's part above tells: which of them are one unit.
std::string BundlesText(const Plan& plan) {
  std::string text;
  for (const Resource& resource : plan.resources) {
    for (const Unit& unit : resource.units) {
      if (unit.groups.empty()) continue;
      text +=
          absl::StrFormat("\n# one unit of %s%s: %s\n", resource.name,
                          unit.state == UnitState::kRefused ? " (refused)" : "", PartsText(unit));
    }
  }
  return text;
}

std::string HeadText(const Plan& plan) {
  const long to_bind = CountVerdict(plan, Verdict::kBind);
  std::string text =
      absl::StrFormat("# IOMMU %s (%s)%s: %d group%s to bind, %d bound, %d refused\n",
                      Name(plan.iommu.state), Name(plan.iommu.kind),
                      plan.acs_override ? ", ACS override" : "", to_bind, to_bind == 1 ? "" : "s",
                      CountVerdict(plan, Verdict::kBound), CountVerdict(plan, Verdict::kRefused));
  const auto size = static_cast<long>(plan.groups.size());
  if (CountVerdict(plan, Verdict::kUnselected) == size) {
    text += "# the configuration selects no device of this node: see `vfio-agent list --all`\n";
  }
  return text;
}

// What is bound and cannot be given now: who has it, or why not.
std::string NotFreeText(const Plan& plan) {
  std::string text;
  for (const Resource& resource : plan.resources) {
    for (const Unit& unit : resource.units) {
      const bool told_elsewhere = unit.state == UnitState::kReady ||
                                  unit.state == UnitState::kToBind ||
                                  unit.state == UnitState::kRefused;
      if (told_elsewhere && unit.pods.empty()) continue;
      text += absl::StrFormat("#   %s of %s, %s: %s\n", unit.id, resource.name, Name(unit.state),
                              WhoOrWhy(unit.pods, unit.reason, true));
    }
  }
  return text.empty() ? text : "\n# not free\n" + text;
}

// What the configured mode gives back of what is taken: where it was changed, what a reload does.
std::string ModeText(const Session& session, const Picture& picture) {
  const Config& config = session.config();
  const Surplus surplus = SurplusOf(UseIn(config.in_force, config.mode), picture);
  if (surplus.groups.empty() && config.in_force == Mode::kPassthrough) return "";
  std::string text = absl::StrFormat("# mode %s", Name(config.in_force));
  if (config.in_force == Mode::kContainer) text += ": nothing is given to guests";
  text += "\n";
  const std::string heading = "#   goes back, once nobody has it: ";
  for (const PciAddress& address : surplus.devices) {
    text += absl::StrFormat("%s%s\n", heading, address.ToString());
  }
  for (const std::string& uuid : surplus.mdevs) {
    text += absl::StrFormat("%smediated device %s\n", heading, uuid);
  }
  return text;
}

// How those are given away that are not the device plugin's.
std::string ServeText(const Plan& plan) {
  std::string text;
  for (const Resource& resource : plan.resources) {
    if (resource.serve != Serve::kDra) continue;
    text += absl::StrFormat("\n# %s: by claims (serve: dra), no resource of the device plugin\n",
                            resource.name);
  }
  return text;
}

// A shell script that does by hand what `bind` would do; all that is no command is a comment.
std::string PlanText(const Plan& plan, const std::string& mode, bool all) {
  std::string text = HeadText(plan) + mode;
  for (const GroupPlan& group : plan.groups) {
    if (group.verdict == Verdict::kBind || group.verdict == Verdict::kBound ||
        (all && group.verdict == Verdict::kUnselected)) {
      text += GroupText(group);
    }
  }
  for (const GroupPlan& group : plan.groups) {
    if (group.verdict != Verdict::kRefused) continue;
    text += GroupText(group);
    for (const Refusal& refusal : group.refusals) text += RefusalText(refusal, "#   ");
  }
  text += BundlesText(plan) + NotFreeText(plan) + ServeText(plan);
  if (!plan.egm.empty()) text += "\n";
  for (const EgmShare& share : plan.egm) text += absl::StrFormat("# %s\n", Spell(share));
  if (!plan.warnings.empty()) text += "\n# warnings\n";
  for (const Refusal& warning : plan.warnings) text += RefusalText(warning, "#   ");
  return text;
}

}  // namespace

int PlanCommand(Session& session) {
  const std::unique_ptr<Picture> picture = TakeOrPrint(session);
  if (picture == nullptr) return kExitFailed;
  const Invocation& invocation = session.invocation();
  const Plan& plan = picture->plan;
  if (IsDocument(invocation.output)) {
    PrintDocument(PlanToJson(plan, invocation.all), invocation.output);
  } else {
    PrintText(PlanText(plan, ModeText(session, *picture), invocation.all));
  }
  if (!invocation.exit_code) return kExitDone;
  // What the configuration excludes is not asked for.
  const auto asked = [](const Refusal& refusal) { return refusal.code != Code::kExcluded; };
  if (std::ranges::any_of(plan.refusals, asked)) return kExitRefused;
  return CountVerdict(plan, Verdict::kBind) > 0 ? kExitWouldChange : kExitDone;
}

}  // namespace vfio_agent
