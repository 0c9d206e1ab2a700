#include "agent/outlets/status.h"

#include <algorithm>
#include <array>
#include <map>

#include "absl/strings/str_format.h"
#include "iommu/bundle/egm.h"

namespace vfio_agent {
namespace {

using Offered = std::map<std::string_view, const OfferedUnit*>;

// Of a unit that is several functions: all of them.
std::vector<std::string> AddressesOf(const Unit& unit) {
  std::vector<std::string> addresses;
  if (unit.addresses.size() < 2) return addresses;
  for (const PciAddress& address : unit.addresses) addresses.push_back(address.ToString());
  return addresses;
}

UnitStatus MakeUnit(const Unit& unit, const Offered& offered) {
  UnitStatus made{.id = unit.id,
                  .group = unit.group,
                  .numa_node = unit.numa_node,
                  .state = std::string(Name(unit.state)),
                  .reason = unit.reason,
                  .pods = unit.pods,
                  .groups = unit.groups,
                  .addresses = AddressesOf(unit)};
  const auto found = offered.find(unit.id);
  made.mdev_type = unit.mdev_type;
  if (!unit.mdev_type.empty()) made.parent = unit.primary.ToString();
  made.listed = found != offered.end();
  made.healthy = made.listed && found->second->healthy;
  return made;
}

// A unit that is listed still although the plan has it no more.
UnitStatus MakeWithdrawn(const OfferedUnit& unit) {
  return {.id = unit.id,
          .group = unit.group,
          .numa_node = unit.numa_node,
          .state = std::string(Name(UnitState::kUnhealthy)),
          .reason = unit.reason,
          .listed = true,
          .healthy = unit.healthy,
          .groups = unit.groups,
          .addresses = unit.addresses.size() > 1 ? unit.addresses : std::vector<std::string>(),
          .mdev_type = unit.mdev_type};
}

Offered IndexUnits(const std::vector<Offer>& offers, const std::string& resource) {
  Offered offered;
  for (const Offer& offer : offers) {
    if (offer.resource != resource) continue;
    for (const OfferedUnit& unit : offer.units) offered.emplace(unit.id, &unit);
  }
  return offered;
}

std::vector<std::string> NotesOf(const Plan& plan, const Resource& resource) {
  std::vector<std::string> notes;
  if (!resource.partitions_fault.empty()) {
    notes.push_back("a machine can have one unit only: " + resource.partitions_fault);
  }
  for (const EgmShare& share : plan.egm) {
    if (share.resource == resource.name) notes.push_back(Spell(share));
  }
  return notes;
}

std::vector<ResourceStatus> MakeResources(const Plan& plan, const std::vector<Offer>& offers) {
  std::map<std::string, ResourceStatus> by_name;
  for (const Resource& resource : plan.resources) {
    Offered offered = IndexUnits(offers, resource.name);
    ResourceStatus& made = by_name[resource.name];
    for (const Unit& unit : resource.units) {
      made.units.push_back(MakeUnit(unit, offered));
      offered.erase(unit.id);
    }
    for (const auto& left : offered) made.units.push_back(MakeWithdrawn(*left.second));
    made.notes = NotesOf(plan, resource);
  }
  for (const Offer& offer : offers) {
    const auto [entry, fresh] = by_name.try_emplace(offer.resource);
    if (!fresh) continue;
    for (const OfferedUnit& unit : offer.units) entry->second.units.push_back(MakeWithdrawn(unit));
  }
  std::vector<ResourceStatus> resources;
  for (auto& [name, resource] : by_name) {
    resource.name = name;
    resources.push_back(std::move(resource));
  }
  return resources;
}

void AddDevices(const GroupPlan& group, const NodeFacts& facts, NodeStatus& node) {
  if (group.resource.empty()) return;
  for (const Member& member : group.members) {
    if (member.role == Role::kBridge) continue;
    const PciDevice* const device = FindDevice(facts, member.address);
    node.devices.push_back({.address = member.address.ToString(),
                            .vendor = absl::StrFormat("%04x", member.vendor),
                            .device = absl::StrFormat("%04x", member.device),
                            .driver = member.driver.value_or(""),
                            .group = group.group,
                            .numa_node = device == nullptr ? std::nullopt : device->numa_node,
                            .resource = group.resource,
                            .makes_mdevs = group.makes_mdevs});
  }
}

constexpr std::array<Code, 4> kDriftCodes = {Code::kDriverChanged, Code::kGroupChanged,
                                             Code::kDeviceGone, Code::kNodeMissing};

// The code that `reason` begins with, where it is one of drift.
std::string DriftCode(const std::string& reason) {
  for (const Code code : kDriftCodes) {
    if (reason.starts_with(CodeName(code))) return std::string(CodeName(code));
  }
  return "";
}

std::map<std::string, const UnitStatus*> UnitsById(const NodeStatus& node) {
  std::map<std::string, const UnitStatus*> units;
  for (const ResourceStatus& resource : node.resources) {
    for (const UnitStatus& unit : resource.units) {
      if (unit.listed) units.emplace(unit.id, &unit);
    }
  }
  return units;
}

}  // namespace

NodeStatus MakeNodeStatus(const Picture& picture, const std::vector<Offer>& offers) {
  NodeStatus node;
  node.iommu = std::string(Name(picture.plan.iommu.state));
  if (picture.custody.tenancy) node.pods_unknown = picture.custody.tenancy->silent;
  for (const GroupPlan& group : picture.plan.groups) {
    ++node.groups[std::string(Name(group.verdict))];
    AddDevices(group, picture.facts, node);
  }
  node.resources = MakeResources(picture.plan, offers);
  for (const Refusal& refusal : picture.plan.refusals) {
    node.refusals.push_back({.code = std::string(CodeName(refusal.code)),
                             .group = refusal.group,
                             .address = refusal.address ? refusal.address->ToString() : "",
                             .text = refusal.text,
                             .remedy = refusal.remedy});
  }
  return node;
}

std::vector<JobStatus> MakeJobStatus(const Underway& underway) {
  std::vector<JobStatus> jobs;
  for (const auto& [group, write] : underway.stuck) {
    jobs.push_back(
        {.group = group, .state = "stuck", .command = write.command, .where = write.where});
  }
  for (const int group : underway.at_work) jobs.push_back({.group = group, .state = "at-work"});
  for (const int group : underway.elsewhere) {
    jobs.push_back({.group = group, .state = "elsewhere"});
  }
  return jobs;
}

std::vector<std::string> FindDrift(const NodeStatus& before, const NodeStatus& now) {
  std::vector<std::string> codes;
  const auto units = UnitsById(now);
  for (const auto& [id, old] : UnitsById(before)) {
    const auto found = units.find(id);
    if (!old->healthy || found == units.end() || found->second->healthy) continue;
    const std::string code = DriftCode(found->second->reason);
    if (!code.empty()) codes.push_back(code);
  }
  return codes;
}

}  // namespace vfio_agent
