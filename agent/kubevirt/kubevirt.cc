#include "agent/kubevirt/kubevirt.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_format.h"

namespace vfio_agent {
namespace {

constexpr size_t kLongest = 400;  // of a text from outside
constexpr uint32_t kDisplayClass = 0x03;

bool IsChosen(const Unit& unit, const std::vector<const GroupPlan*>& chosen) {
  return std::ranges::any_of(chosen, [&unit](const GroupPlan* group) {
    if (group->group && !unit.groups.empty()) {
      return std::ranges::count(unit.groups, *group->group) > 0;
    }
    if (!unit.mdev_type.empty()) {  // its own group is none of the plan's: the parent's is
      return std::ranges::count(group->members, unit.primary, &Member::address) > 0;
    }
    if (group->group || unit.group) return group->group == unit.group;
    return std::ranges::count(group->members, unit.primary, &Member::address) > 0;
  });
}

// Containers are served with these where the configuration says so; QEMU takes none.
constexpr char kNoMachine[] =
    "noiommu: UNSAFE, served to containers only: QEMU, and so KubeVirt, cannot use a group of "
    "noiommu mode";

bool IsWithoutIommu(const Unit& unit, const NodeFacts& facts) {
  const std::vector<int> groups = GroupsOf(unit);
  return unit.state != UnitState::kRefused && std::ranges::any_of(groups, [&facts](int group) {
           const auto known = facts.groups.find(group);
           return known != facts.groups.end() && known->second.noiommu;
         });
}

// Display and 3D controllers are what KubeVirt calls GPUs; everything else is a host device.
bool IsGpu(const PciDevice& device) { return device.class_code >> 16 == kDisplayClass; }

std::string SelectorOf(const PciDevice& device) {
  return absl::StrFormat("%04X:%04X", device.vendor, device.device);
}

void AddUnit(const Unit& unit, const NodeFacts& facts, ServedResource& served,
             std::set<std::string>& selectors) {
  served.groups[*unit.group].push_back(unit.id);
  if (!unit.groups.empty()) served.first_only = true;
  for (const PciAddress& address : unit.addresses) {
    const PciDevice* const device = FindDevice(facts, address);
    if (device == nullptr) continue;
    selectors.insert(SelectorOf(*device));
    if (!IsGpu(*device)) served.list = MachineList::kHostDevices;
  }
}

void AddMdev(const Unit& unit, const NodeFacts& facts, ServedResource& served) {
  if (unit.group) served.groups[*unit.group].push_back(unit.id);
  if (!unit.group) ++served.to_be_made;
  const PciDevice* const parent = FindDevice(facts, unit.primary);
  if (parent != nullptr && !IsGpu(*parent)) served.list = MachineList::kHostDevices;
  const MdevParent* const types = FindMdevParent(facts.mdev, unit.primary);
  const MdevType* const type = types == nullptr ? nullptr : FindMdevType(*types, unit.mdev_type);
  const std::string name = type == nullptr || type->name.empty() ? unit.mdev_type : type->name;
  if (!std::ranges::count(served.mdev_types, name)) served.mdev_types.push_back(name);
}

Json GroupsToJson(const ServedResource& resource) {
  Json groups = Json::array();
  for (const auto& [group, units] : resource.groups) {
    groups.push_back({{"group", group}, {"units", units}});
  }
  return groups;
}

Json EntriesOf(const Served& served) {
  Json entries = Json::array();
  for (const ServedResource& resource : served.resources) {
    for (const std::string& selector : resource.selectors) {
      entries.push_back({{"pciVendorSelector", selector},
                         {"resourceName", resource.name},
                         {"externalResourceProvider", true}});
    }
  }
  return entries;
}

Json MediatedOf(const Served& served) {
  Json entries = Json::array();
  for (const ServedResource& resource : served.resources) {
    for (const std::string& type : resource.mdev_types) {
      entries.push_back({{"mdevNameSelector", type},
                         {"resourceName", resource.name},
                         {"externalResourceProvider", true}});
    }
  }
  return entries;
}

Json DevicesOf(const Served& served) {
  Json devices = {{"gpus", Json::array()}, {"hostDevices", Json::array()}};
  for (const ServedResource& resource : served.resources) {
    Json& list = devices[std::string(Name(resource.list))];
    const char* const word = resource.list == MachineList::kGpus ? "gpu" : "device";
    for (size_t i = 0; i < resource.together; ++i) {
      list.push_back({{"name", absl::StrFormat("%s%d", word, list.size() + 1)},
                      {"deviceName", resource.name}});
    }
  }
  return devices;
}

}  // namespace

std::string_view Name(MachineList list) {
  return list == MachineList::kGpus ? "gpus" : "hostDevices";
}

size_t ServedResource::Units() const {
  size_t count = to_be_made;
  for (const auto& entry : groups) count += entry.second.size();
  return count;
}

const ServedResource* Served::Find(std::string_view name) const {
  const auto found = std::ranges::find(resources, name, &ServedResource::name);
  return found == resources.end() ? nullptr : &*found;
}

std::string Served::WhyRefused(std::string_view name) const {
  const auto found = std::ranges::find(refused, name, &RefusedUnit::resource);
  return found == refused.end() ? "" : found->reason;
}

bool Served::NeedsGate() const {
  return std::ranges::count(resources, MachineList::kHostDevices, &ServedResource::list) > 0;
}

Served FindServed(const Plan& plan, const NodeFacts& facts,
                  const std::vector<const GroupPlan*>& chosen) {
  Served served;
  for (const Resource& resource : plan.resources) {
    // Machines ask for those by claims; to KubeVirt they are no resources.
    if (resource.serve == Serve::kDra) {
      const auto count = std::ranges::count_if(resource.units, [&chosen](const Unit& unit) {
        return IsChosen(unit, chosen) && unit.state != UnitState::kRefused;
      });
      if (count > 0) served.by_claims[resource.name] = static_cast<size_t>(count);
      continue;
    }
    ServedResource found{.name = resource.name, .sizes = SizesOf(resource)};
    if (resource.only_partitions && !resource.partitions.empty()) {
      found.together = resource.partitions.front().size();
    }
    std::set<std::string> selectors;
    for (const Unit& unit : resource.units) {
      if (!IsChosen(unit, chosen)) continue;
      if (IsWithoutIommu(unit, facts)) {
        served.refused.push_back(
            {.resource = resource.name, .unit = unit.id, .reason = kNoMachine});
        continue;
      }
      const bool mdev = !unit.mdev_type.empty();
      if (mdev && unit.state != UnitState::kRefused) {
        AddMdev(unit, facts, found);
      } else if (unit.state == UnitState::kRefused || !unit.group) {
        served.refused.push_back(
            {.resource = resource.name, .unit = unit.id, .reason = unit.reason});
      } else {
        AddUnit(unit, facts, found, selectors);
      }
    }
    found.selectors.assign(selectors.begin(), selectors.end());
    if (found.Units() > 0) served.resources.push_back(std::move(found));
  }
  std::ranges::sort(served.resources, {}, &ServedResource::name);
  for (const GroupPlan* group : chosen) {
    std::ranges::move(TellVfsToMake(*group), std::back_inserter(served.to_be_made));
  }
  return served;
}

Json KubevirtToJson(const Served& served) {
  Json resources = Json::array(), refused = Json::array(), gates = Json::array();
  for (const ServedResource& resource : served.resources) {
    resources.push_back({{"name", resource.name},
                         {"selectors", resource.selectors},
                         {"list", std::string(Name(resource.list))},
                         {"units", resource.Units()},
                         {"groups", GroupsToJson(resource)}});
    if (!resource.sizes.empty()) resources.back()["sizes"] = resource.sizes;
  }
  for (const RefusedUnit& unit : served.refused) {
    refused.push_back({{"resource", unit.resource}, {"unit", unit.unit}, {"reason", unit.reason}});
  }
  Json permitted = {{"pciHostDevices", EntriesOf(served)}};
  if (Json mediated = MediatedOf(served); !mediated.empty()) {
    permitted["mediatedDevices"] = std::move(mediated);
  }
  if (served.NeedsGate()) gates.push_back(kHostDevicesGate);
  Json by_claims = Json::array();
  for (const auto& [name, units] : served.by_claims) {
    by_claims.push_back({{"name", name}, {"units", units}});
  }
  return {{"schema", "vfio-agent/kubevirt/v1"},
          {"resources", resources},
          {"by_claims", by_claims},
          {"refused", refused},
          {"feature_gates", gates},
          {"permitted_host_devices", permitted},
          {"machine_devices", DevicesOf(served)},
          {"to_be_made", served.to_be_made}};
}

std::string Printable(std::string_view text) {
  std::string line(text.substr(0, kLongest));
  std::ranges::replace_if(
      line, [](char c) { return c < ' ' || c > '~'; }, '?');
  if (text.size() > kLongest) line += "..";
  return line;
}

}  // namespace vfio_agent
