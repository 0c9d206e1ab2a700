#include <algorithm>

#include "absl/strings/str_format.h"
#include "iommu/bundle/bundle.h"
#include "iommu/bundle/partitions.h"
#include "iommu/plan/condition.h"
#include "iommu/plan/planning.h"
#include "iommu/policy/naming.h"

namespace vfio_agent {
namespace {

std::vector<Unit> UnitsOf(const Draft& draft, const Tenants& tenants, const Context& context) {
  std::vector<Unit> units;
  for (size_t i = 0; i < draft.devices.size(); ++i) {
    if (draft.plan.members[i].role != Role::kPrimary) continue;
    const PciDevice& device = *draft.devices[i];
    if (draft.rule->shared_group == SharedGroup::kUnit && !units.empty()) {
      units.front().addresses.push_back(device.address);
      continue;
    }
    Unit unit{.id = device.address.ToString(),
              .primary = device.address,
              .addresses = {device.address},
              .group = draft.plan.group,
              .numa_node = NumaNodeOf(device, *draft.rule, context.facts)};
    unit.pods = tenants.PodsOf(device.address);
    const Condition condition = ConditionOf(draft, device, unit.pods, tenants, context);
    unit.state = condition.state;
    unit.reason = condition.reason;
    unit.reason = WithUnsafe(unit.reason, context.facts, GroupsOf(unit));
    units.push_back(std::move(unit));
  }
  return units;
}

const PciDevice& FirstPrimary(const Draft& draft) {
  for (size_t i = 0; i < draft.devices.size(); ++i) {
    if (draft.plan.members[i].role == Role::kPrimary) return *draft.devices[i];
  }
  return *draft.devices.front();
}

void AddBundles(const std::vector<Draft>& drafts, const ResourceRule& rule, const Tenants& tenants,
                const Context& context, Resource& resource) {
  const std::vector<Bundle> bundles = ComposeBundles(drafts, rule, context.facts);
  resource.only_partitions = rule.bundle_by_device;
  for (const Bundle& bundle : bundles) {
    std::vector<Unit> units = UnitsOfBundle(drafts, rule, bundle, tenants, context);
    if (rule.bundle_by_device && bundle.fault.empty()) {
      std::vector<std::string>& ids = resource.partitions.emplace_back();
      for (const Unit& unit : units) ids.push_back(unit.id);
      std::ranges::sort(ids);
    }
    std::ranges::move(units, std::back_inserter(resource.units));
  }
  resource.vendor = bundles.front().devices.front()->vendor;
  resource.device = bundles.front().devices.front()->device;
}

// Of a name that several kinds of entries have, the first kind keeps it: whole devices, then VFs,
// then bundles.
int KindOf(const ResourceRule& rule) {
  if (!rule.bundle.empty()) return 2;
  return rule.sriov ? 1 : 0;
}

using Owners = std::map<std::string, const ResourceRule*>;  // by the resource's name

Owners OwnersOf(const std::vector<Draft>& drafts) {
  Owners owners;
  for (const Draft& draft : drafts) {
    if (!draft.Selected()) continue;
    const ResourceRule*& owner = owners.try_emplace(draft.plan.resource, draft.rule).first->second;
    if (KindOf(*draft.rule) < KindOf(*owner)) owner = draft.rule;
  }
  return owners;
}

// A pod that asks for one kind must not be given the other.
void RefuseOtherKind(Draft& draft, const ResourceRule& owner, const PciDevice& device) {
  if (draft.rule == &owner) return;
  if (draft.rule->serve != owner.serve) {
    return Refuse(draft, Code::kNameCollision, &device,
                  absl::StrFormat("the device would be in the resource '%s', which another entry "
                                  "has with `serve: %s`",
                                  draft.plan.resource, Name(owner.serve)),
                  "give one of the two entries another `name` or a `suffix`, or both the same "
                  "`serve`");
  }
  if (!draft.rule->bundle.empty()) {
    return Refuse(draft, Code::kNameCollision, &device,
                  absl::StrFormat("the bundle would be the resource '%s', which another entry has",
                                  draft.plan.resource),
                  "give the entry with `bundle` another `name`");
  }
  if (KindOf(*draft.rule) == KindOf(owner)) return;
  Refuse(draft, Code::kNameCollision, &device,
         absl::StrFormat("the virtual function would be in the resource '%s', which has another "
                         "entry's whole devices",
                         draft.plan.resource),
         "give the entry with `sriov` a `name` or a `suffix`");
}

}  // namespace

std::vector<int> GroupsOf(const Unit& unit) {
  if (!unit.groups.empty()) return unit.groups;
  return unit.group ? std::vector<int>{*unit.group} : std::vector<int>{};
}

std::optional<int> NumaNodeOf(const PciDevice& device, const ResourceRule& rule,
                              const NodeFacts& facts) {
  if (!rule.numa_nearest || !device.numa_node) return device.numa_node;
  const auto nearest = facts.nearest_cpu_nodes.find(*device.numa_node);
  return nearest == facts.nearest_cpu_nodes.end() ? device.numa_node : nearest->second;
}

std::string WithUnsafe(std::string reason, const NodeFacts& facts, const std::vector<int>& groups) {
  const bool unsafe =
      std::ranges::any_of(groups, [&facts](int group) { return facts.groups.at(group).noiommu; });
  if (!unsafe) return reason;
  return absl::StrFormat("%s%s%s, nothing isolates its user from the host", reason,
                         reason.empty() ? "" : "; ", kUnsafe);
}

void RefuseBadNames(std::vector<Draft>& drafts) {
  const Owners owners = OwnersOf(drafts);
  std::map<std::string, std::string> variables;  // variable -> the resource that has it
  for (Draft& draft : drafts) {
    if (!draft.Selected()) continue;
    const PciDevice& device = FirstPrimary(draft);
    const std::string& name = draft.plan.resource;
    if (const absl::Status status = CheckResourceName(name); !status.ok()) {
      Refuse(draft, Code::kNameInvalid, &device, std::string(status.message()));
    }
    RefuseOtherKind(draft, *owners.at(name), device);
    const auto [owner, fresh] = variables.try_emplace(ResourceVariable(name), name);
    if (!fresh && owner->second != name) {
      Refuse(draft, Code::kNameCollision, &device,
             absl::StrFormat("'%s' and '%s' would share the variable %s", name, owner->second,
                             owner->first));
    }
  }
}

std::vector<Resource> MakeResources(const std::vector<Draft>& drafts, const Context& context) {
  std::map<std::string, Resource> resources;
  const Owners owners = OwnersOf(drafts);
  const Tenants tenants(context.custody);
  for (const Draft& draft : drafts) {
    if (!draft.Selected()) continue;
    const ResourceRule* const owner = owners.at(draft.plan.resource);
    if (!draft.rule->bundle.empty() && draft.rule != owner) continue;  // refused for its name
    Resource& resource = resources[draft.plan.resource];
    // All units of a bundle's rule come with the first of its groups.
    if (!draft.rule->bundle.empty() && !resource.units.empty()) continue;
    if (resource.units.empty()) {
      const PciDevice& device = FirstPrimary(draft);
      resource.name = draft.plan.resource;
      resource.vendor = device.vendor;
      resource.device = device.device;
      resource.numa = draft.rule->numa;
    }
    if (!draft.rule->bundle.empty()) {
      AddBundles(drafts, *draft.rule, tenants, context, resource);
      continue;
    }
    std::ranges::move(UnitsOf(draft, tenants, context), std::back_inserter(resource.units));
  }
  std::vector<Resource> list;
  for (auto& entry : resources) {
    std::ranges::sort(entry.second.units, {}, &Unit::primary);
    ResolvePartitions(*owners.at(entry.first), entry.second);
    entry.second.serve = owners.at(entry.first)->serve;
    list.push_back(std::move(entry.second));
  }
  return list;
}

}  // namespace vfio_agent
