#include "agent/daemon/plan_change.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/str_format.h"
#include "iommu/vgpu/vgpu.h"

namespace vfio_agent {
namespace {

using Kind = PlanChange::Kind;

std::string KeyOf(const GroupPlan& group) {
  if (group.group) return absl::StrFormat("%08d", *group.group);
  return group.members.empty() ? "" : group.members.front().address.ToString();
}

std::map<std::string, const GroupPlan*> Index(const Plan& plan) {
  std::map<std::string, const GroupPlan*> index;
  for (const GroupPlan& group : plan.groups) index[KeyOf(group)] = &group;
  return index;
}

bool IsServed(const GroupPlan& group) {
  if (TakesVgpuAway(group)) return false;
  return group.verdict == Verdict::kBind || group.verdict == Verdict::kBound;
}

std::set<Code> CodesOf(const GroupPlan& group) {
  std::set<Code> codes;
  for (const Refusal& refusal : group.refusals) codes.insert(refusal.code);
  return codes;
}

// What each unit of the group stands for, by its id.
std::map<std::string, std::vector<PciAddress>> UnitsOf(const Plan& plan, const GroupPlan& group) {
  std::map<std::string, std::vector<PciAddress>> units;
  for (const Resource& resource : plan.resources) {
    for (const Unit& unit : resource.units) {
      if (!group.group || std::ranges::count(GroupsOf(unit), *group.group) == 0) continue;
      units[unit.id] = unit.addresses;
    }
  }
  return units;
}

// Nothing of the group itself was served: its virtual functions have groups of their own.
std::optional<Kind> KindOfPhysical(const GroupPlan& was, const GroupPlan& will) {
  switch (will.verdict) {
    case Verdict::kBind:
      return was.verdict == Verdict::kBind ? std::nullopt : std::optional(Kind::kVfsToMake);
    case Verdict::kRefused:
      if (was.verdict == Verdict::kRefused && CodesOf(was) == CodesOf(will)) return std::nullopt;
      return CodesOf(will).contains(Code::kPfHasVfs) ? Kind::kVfsStay : Kind::kRefused;
    case Verdict::kBound:
    case Verdict::kUnselected:
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<Kind> KindOf(const Plan& before, const GroupPlan& was, const Plan& after,
                           const GroupPlan& will) {
  if (IsPhysical(will)) return KindOfPhysical(was, will);
  if (TakesVgpuAway(will) && will.verdict == Verdict::kBind) {
    return TakesVgpuAway(was) ? std::nullopt : std::optional(Kind::kNoLongerServed);
  }
  if (IsServed(was) && !IsServed(will)) {
    return IsPhysical(was) ? Kind::kVfsLeft : Kind::kNoLongerServed;
  }
  if (will.verdict == Verdict::kRefused) {
    const bool same = was.verdict == Verdict::kRefused && CodesOf(was) == CodesOf(will);
    return same ? std::nullopt : std::optional(Kind::kRefused);
  }
  if (will.verdict == Verdict::kUnselected) {
    return was.verdict == Verdict::kUnselected ? std::nullopt
                                               : std::optional(Kind::kNoLongerSelected);
  }
  if (will.verdict == Verdict::kBind && was.verdict != Verdict::kBind) return Kind::kWillBind;
  if (!IsServed(was)) return Kind::kServed;
  if (was.resource != will.resource) return Kind::kRenamed;
  if (UnitsOf(before, was) != UnitsOf(after, will)) return Kind::kUnits;
  return std::nullopt;
}

}  // namespace

std::vector<PlanChange> ComparePlans(const Plan& before, const Plan& after) {
  std::vector<PlanChange> changes;
  const std::map<std::string, const GroupPlan*> had = Index(before), will = Index(after);
  for (const auto& [key, was] : had) {
    const auto found = will.find(key);
    GroupPlan unselected = *was;
    unselected.verdict = Verdict::kUnselected;
    const GroupPlan& now = found == will.end() ? unselected : *found->second;
    if (const auto kind = KindOf(before, *was, after, now)) {
      changes.push_back({.kind = *kind, .group = now, .before = was->resource});
    }
  }
  for (const auto& [key, now] : will) {
    if (had.contains(key)) continue;
    const GroupPlan none;
    if (const auto kind = KindOf(before, none, after, *now)) {
      changes.push_back({.kind = *kind, .group = *now});
    }
  }
  return changes;
}

std::string_view Name(PlanChange::Kind kind) {
  switch (kind) {
    case Kind::kWillBind:
      return "will be bound";
    case Kind::kServed:
      return "will be served";
    case Kind::kRenamed:
      return "renamed";
    case Kind::kUnits:
      return "other units";
    case Kind::kNoLongerServed:
      return "no longer served";
    case Kind::kRefused:
      return "refused";
    case Kind::kNoLongerSelected:
      return "no longer selected";
    case Kind::kVfsToMake:
      return "virtual functions will be made";
    case Kind::kVfsStay:
      return "virtual functions stay";
    case Kind::kVfsLeft:
      return "virtual functions left alone";
  }
  return "";
}

}  // namespace vfio_agent
