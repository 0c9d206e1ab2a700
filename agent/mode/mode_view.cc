#include "agent/mode/mode_view.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "iommu/plan/condition.h"
#include "iommu/plan/job_key.h"
#include "sysfs/use/holders.h"

namespace vfio_agent {
namespace {

bool IsListed(const Unit& unit) {
  return unit.group && unit.state != UnitState::kToBind && unit.state != UnitState::kRefused;
}

bool IsCounted(const Tenancy& tenancy, const std::string& resource, const std::string& unit) {
  // It does not tell: our word is all there is. What it said before it fell silent is no news.
  if (!tenancy.claims.allocatable || !tenancy.silent.empty()) return false;
  const auto counted = tenancy.claims.allocatable->find(resource);
  return counted != tenancy.claims.allocatable->end() && counted->second.contains(unit);
}

// Pods by their names; processes only where no pod explains them.
void AddTenants(const Unit& unit, const Tenancy& tenancy, std::vector<std::string>& tenants) {
  const size_t before = tenants.size();
  for (const PodClaim& pod : unit.pods) {
    tenants.push_back(absl::StrFormat("%s, which has %s", Spell(pod), unit.id));
  }
  if (tenants.size() > before) return;
  if (std::ranges::count(tenancy.grants, unit.id, &Grant::unit) > 0) {
    tenants.push_back(absl::StrFormat("the pod that was just given %s", unit.id));
    return;
  }
  for (const int group : GroupsOf(unit)) {
    const auto open = tenancy.open.find(group);
    if (open == tenancy.open.end()) continue;
    for (const Holder& holder : open->second) {
      tenants.push_back(absl::StrFormat("%s, which has %s open", Spell(holder), unit.id));
    }
  }
}

}  // namespace

void SeeWhatGoes(const Picture& picture, const ModeUse& use, const SlicedUnits& sliced,
                 ModeView& view) {
  static const Tenancy kNobodyLooked;
  const Tenancy& tenancy = picture.custody.tenancy ? *picture.custody.tenancy : kNobodyLooked;
  for (const Resource& resource : picture.plan.resources) {
    for (const Unit& unit : resource.units) {
      if (!IsListed(unit) || HasUseFor(use, unit)) continue;
      view.listed = true;
      if (IsCounted(tenancy, resource.name, unit.id)) view.advertised.push_back(unit.id);
      if (resource.serve == Serve::kDra && sliced.MayHave(unit.id)) view.sliced.push_back(unit.id);
      AddTenants(unit, tenancy, view.tenants);
    }
  }
  const std::string& why = tenancy.silent.empty() ? tenancy.claims.why_unknown : tenancy.silent;
  if (view.listed && !why.empty()) view.tenants.push_back("pods that are not known: " + why);
}

std::vector<std::string> WhoKeeps(const Plan& plan) {
  std::vector<std::string> texts;
  for (const Refusal& refusal : plan.refusals) {
    const bool used = refusal.code == Code::kInUseHolder || refusal.code == Code::kHeld;
    if (used) texts.push_back("the end of a use: " + refusal.text);
  }
  return texts;
}

std::vector<std::string> WhatIsStuck(const Underway& underway) {
  std::vector<std::string> texts;
  for (const auto& [group, write] : underway.stuck) {
    texts.push_back(absl::StrFormat("%s: the kernel has not returned from `%s`", SpellJobKey(group),
                                    write.command));
  }
  return texts;
}

}  // namespace vfio_agent
