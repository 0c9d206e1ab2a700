#include <algorithm>
#include <set>

#include "absl/strings/str_format.h"
#include "iommu/bundle/bundle.h"

namespace vfio_agent {
namespace {

// The worse one decides. What is refused, or waits to be bound, is no capacity.
int RankOf(UnitState state) {
  switch (state) {
    case UnitState::kRefused:
      return 5;
    case UnitState::kToBind:
      return 4;
    case UnitState::kUnhealthy:
      return 3;
    case UnitState::kWithheld:
      return 2;
    case UnitState::kHeld:
      return 1;
    case UnitState::kReady:
      return 0;
  }
  return 5;
}

bool Has(const Draft& draft, const PciDevice* device) {
  return std::ranges::count(draft.devices, device) > 0;
}

// The bundle's devices of one draft, in the bundle's order.
std::vector<const PciDevice*> PartOf(const Bundle& bundle, const Draft& draft) {
  std::vector<const PciDevice*> part;
  std::ranges::copy_if(bundle.devices, std::back_inserter(part),
                       [&draft](const PciDevice* device) { return Has(draft, device); });
  return part;
}

std::optional<int> CommonNode(const std::vector<const PciDevice*>& devices,
                              const ResourceRule& rule, const NodeFacts& facts) {
  const std::optional<int> node = NumaNodeOf(*devices.front(), rule, facts);
  const bool all = std::ranges::all_of(
      devices, [&](const PciDevice* device) { return NumaNodeOf(*device, rule, facts) == node; });
  return all ? node : std::nullopt;
}

Unit UnitOfAll(const std::vector<Draft>& drafts, const ResourceRule& rule, const Bundle& bundle,
               const Tenants& tenants, const Context& context) {
  const PciDevice& first = *bundle.devices.front();
  Unit unit{.id = first.address.ToString(),
            .primary = first.address,
            .numa_node = CommonNode(bundle.devices, rule, context.facts),
            .state = UnitState::kReady,
            .pods = tenants.PodsOf(first.address),
            .pairs = bundle.pairs};
  for (const PciDevice* device : bundle.devices) unit.addresses.push_back(device->address);
  std::set<int> groups;
  for (const size_t number : bundle.drafts) {
    const Draft& draft = drafts[number];
    const PciDevice& part = *PartOf(bundle, draft).front();
    const Condition condition =
        ConditionOfPart(draft, part, first.address, unit.pods, tenants, context);
    if (RankOf(condition.state) > RankOf(unit.state)) {
      unit.state = condition.state;
      unit.reason = condition.reason;
    }
    if (draft.plan.group) groups.insert(*draft.plan.group);
    if (&part == &first) unit.group = draft.plan.group;
  }
  if (groups.size() > 1) unit.groups.assign(groups.begin(), groups.end());
  unit.reason = WithUnsafe(unit.reason, context.facts, GroupsOf(unit));
  return unit;
}

// A part that is ready is of no use without the others, and would be counted.
void WithholdWithOthers(std::vector<Unit>& units) {
  const auto bad =
      std::ranges::find_if(units, [](const Unit& unit) { return unit.state != UnitState::kReady; });
  if (bad == units.end()) return;
  const std::string why =
      absl::StrFormat("%s: %s, of the same bundle, is %s%s%s", CodeName(Code::kGroupSplit), bad->id,
                      Name(bad->state), bad->reason.empty() ? "" : ": ", bad->reason);
  for (Unit& unit : units) {
    if (unit.state != UnitState::kReady) continue;
    unit.state = UnitState::kWithheld;
    unit.reason = why;
  }
}

std::vector<Unit> UnitsOfEach(const std::vector<Draft>& drafts, const ResourceRule& rule,
                              const Bundle& bundle, const Tenants& tenants,
                              const Context& context) {
  std::vector<Unit> units;
  for (const PciDevice* device : bundle.devices) {
    Unit unit{.id = device->address.ToString(),
              .primary = device->address,
              .addresses = {device->address},
              .numa_node = NumaNodeOf(*device, rule, context.facts),
              .pods = tenants.PodsOf(device->address)};
    for (const auto& pair : bundle.pairs) {
      if (pair.first == device->address) unit.pairs.push_back(pair);
    }
    for (const size_t number : bundle.drafts) {
      if (!Has(drafts[number], device)) continue;
      unit.group = drafts[number].plan.group;
      const Condition condition = ConditionOf(drafts[number], *device, unit.pods, tenants, context);
      unit.state = condition.state;
      unit.reason = condition.reason;
    }
    units.push_back(std::move(unit));
  }
  WithholdWithOthers(units);
  for (Unit& unit : units) {
    unit.reason = WithUnsafe(unit.reason, context.facts, GroupsOf(unit));
  }
  return units;
}

void RefuseFaulty(std::vector<Draft>& drafts, const ResourceRule& rule, const Bundle& bundle) {
  const std::string first = bundle.devices.front()->address.ToString();
  const std::string text =
      bundle.left_over
          ? absl::StrFormat("%s is left over and in no unit of %s: %s", first, rule.name,
                            bundle.fault)
          : absl::StrFormat("the unit %s of %s is not whole: %s", first, rule.name, bundle.fault);
  for (const size_t number : bundle.drafts) {
    Refuse(drafts[number], Code::kGroupSplit, PartOf(bundle, drafts[number]).front(), text,
           absl::StrFormat("see what there is with `vfio-agent explain %s` and `vfio-agent "
                           "topology`; select what is missing, change the counts of "
                           "resources[].bundle, or exclude the device",
                           rule.name));
  }
}

bool WillBindAny(const Draft& draft) {
  for (size_t i = 0; i < draft.devices.size(); ++i) {
    if (WillBind(draft, i)) return true;
  }
  return false;
}

// Nothing is taken from the host for a unit that cannot be given. What is bound already stays.
void RefuseWithOthers(std::vector<Draft>& drafts, const ResourceRule& rule, const Bundle& bundle) {
  const auto bad = std::ranges::find_if(
      bundle.drafts, [&](size_t number) { return !drafts[number].plan.refusals.empty(); });
  if (bad == bundle.drafts.end()) return;
  const Refusal why = drafts[*bad].plan.refusals.front();
  for (const size_t number : bundle.drafts) {
    Draft& draft = drafts[number];
    if (!draft.plan.refusals.empty() || !WillBindAny(draft)) continue;
    Refuse(draft, Code::kGroupSplit, PartOf(bundle, draft).front(),
           absl::StrFormat("the unit %s of %s is not whole: %s: %s",
                           bundle.devices.front()->address.ToString(), rule.name,
                           CodeName(why.code), why.text),
           why.remedy);
  }
}

}  // namespace

void RefuseBrokenBundles(std::vector<Draft>& drafts, const Context& context) {
  for (const ResourceRule& rule : context.policy.resources) {
    for (const Bundle& bundle : ComposeBundles(drafts, rule, context.facts)) {
      if (!bundle.fault.empty()) RefuseFaulty(drafts, rule, bundle);
      if (bundle.fault.empty()) RefuseWithOthers(drafts, rule, bundle);
    }
  }
}

std::vector<Unit> UnitsOfBundle(const std::vector<Draft>& drafts, const ResourceRule& rule,
                                const Bundle& bundle, const Tenants& tenants,
                                const Context& context) {
  if (rule.bundle_by_device) return UnitsOfEach(drafts, rule, bundle, tenants, context);
  return {UnitOfAll(drafts, rule, bundle, tenants, context)};
}

Parts PartsOf(const std::vector<Draft>& drafts, const Policy& policy, const NodeFacts& facts) {
  Parts parts;
  for (const ResourceRule& rule : policy.resources) {
    if (rule.bundle_by_device) continue;
    for (const Bundle& bundle : ComposeBundles(drafts, rule, facts)) {
      const std::string id = bundle.devices.front()->address.ToString();
      for (size_t i = 1; i < bundle.devices.size(); ++i) {
        parts[{rule.name, id}].push_back(bundle.devices[i]->address);
      }
    }
  }
  return parts;
}

Parts PartsOf(const std::vector<Resource>& resources) {
  Parts parts;
  for (const Resource& resource : resources) {
    for (const Unit& unit : resource.units) {
      if (unit.addresses.size() < 2) continue;
      parts[{resource.name, unit.id}] = {unit.addresses.begin() + 1, unit.addresses.end()};
    }
  }
  return parts;
}

}  // namespace vfio_agent
