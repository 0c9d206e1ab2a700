#include "agent/topology/topology.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "absl/strings/str_format.h"
#include "agent/commands/commands.h"
#include "agent/kubevirt/kubevirt.h"
#include "iommu/mdev/mdev.h"
#include "iommu/plan/unsafe.h"
#include "iommu/policy/selector.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

struct KindWords {
  const char* word;
  const char* prefix;
};
constexpr std::array<KindWords, 5> kKinds = {
    {{"gpu", "GPU"}, {"nvswitch", "NVSW"}, {"nic", "NIC"}, {"nvme", "NVME"}, {"other", "DEV"}}};

constexpr uint16_t kNvidia = 0x10de;

// 0300 is also the class of what draws a server's console (ASPEED, Matrox, a hypervisor's).
bool IsGpu(const PciDevice& device) {
  constexpr std::array<uint16_t, 3> kMakers = {kNvidia, 0x1002, 0x8086};
  switch (device.Class16()) {
    case 0x0300:
      return std::ranges::count(kMakers, device.vendor) > 0;
    case 0x0302:
    case 0x0380:
    case 0x1200:
      return true;
    default:
      return false;
  }
}

DeviceKind KindOf(const PciDevice& device) {
  if (IsGpu(device)) return DeviceKind::kGpu;
  if (IsNvswitch(device)) return DeviceKind::kNvswitch;
  if (device.class_code >> 16 == 0x02) return DeviceKind::kNic;
  return device.Class16() == 0x0108 ? DeviceKind::kNvme : DeviceKind::kOther;
}

struct Place {
  const GroupPlan* group = nullptr;
  Role role = Role::kForeign;
};
using Places = std::map<PciAddress, Place>;

Places PlacesOf(const Plan& plan) {
  Places places;
  for (const GroupPlan& group : plan.groups) {
    for (const Member& member : group.members) places[member.address] = {&group, member.role};
  }
  return places;
}

bool IsPrimary(const Places& places, const PciDevice& device) {
  const auto place = places.find(device.address);
  return place != places.end() && place->second.role == Role::kPrimary;
}

// A VF has its PF's place; a node may have hundreds.
bool IsOfInterest(const Places& places, const PciDevice& device) {
  if (device.IsBridge()) return false;
  return IsPrimary(places, device) || (KindOf(device) != DeviceKind::kOther && !device.IsVf());
}

bool Means(const Target& target, const Places& places, const PciDevice& device) {
  if (device.IsBridge()) return false;
  if (target.selector.address) return device.address == *target.selector.address;
  if (!IsOfInterest(places, device)) return false;
  if (target.resource.empty()) return Matches(target.selector, device);
  const auto place = places.find(device.address);
  return place != places.end() && place->second.group->resource == target.resource;
}

absl::StatusOr<std::vector<const PciDevice*>> Choose(const NodeFacts& facts, const Places& places,
                                                     const std::vector<std::string>& selectors) {
  std::vector<const PciDevice*> chosen;
  for (const PciDevice& device : facts.devices) {
    if (selectors.empty() && IsOfInterest(places, device)) chosen.push_back(&device);
  }
  for (const std::string& text : selectors) {
    const MdevInstance* const mdev = MdevMeant(facts, text);
    ASSIGN_OR_RETURN(const Target target,
                     ParseTarget(mdev == nullptr ? text : mdev->parent->ToString(), facts.devices));
    bool any = false;
    for (const PciDevice& device : facts.devices) {
      if (!Means(target, places, device)) continue;
      any = true;
      if (std::ranges::count(chosen, &device) == 0) chosen.push_back(&device);
    }
    if (!any) {
      return absl::NotFoundError(
          absl::StrFormat("'%s' fits no device whose distance could be told", text));
    }
  }
  std::ranges::sort(chosen, {}, [](const PciDevice* device) {
    return std::make_tuple(KindOf(*device), device->address);
  });
  return chosen;
}

TopologyDevice Describe(const Picture& picture, const Places& places, const PciDevice& device) {
  TopologyDevice described{
      .kind = KindOf(device),
      .address = device.address,
      .id = absl::StrFormat("%04x:%04x", device.vendor, device.device),
      .model = Printable(ModelOf(picture, device)),
      .driver = Printable(device.driver.value_or("")),
      .numa_node = device.numa_node,
      .group = device.group,
      .module = IsNvlinkModule(device),
  };
  const auto found = places.find(device.address);
  if (found == places.end()) return described;
  const auto& [group, role] = found->second;
  if (role == Role::kPhysical || group->makes_mdevs) {
    described.host = role == Role::kPhysical || role == Role::kPrimary;
    if (described.host && group->verdict == Verdict::kRefused) described.verdict = group->verdict;
    return described;
  }
  described.verdict = group->verdict;
  described.unsafe = IsUnsafe(*group);
  if (role != Role::kForeign) described.resource = group->resource;
  return described;
}

// The nearest hop that both are below; they have one.
PciAddress Below(const NodeFacts& facts, const PciDevice& a, const PciDevice& b) {
  const std::vector<Hop> first = HopsTo(facts, a), second = HopsTo(facts, b);
  PciAddress below;
  for (size_t i = 0; i < std::min(first.size(), second.size()); ++i) {
    if (first[i].entry != second[i].entry) break;
    below = first[i].entry;
    if (first[i].exit != second[i].exit) break;
  }
  return below;
}

void FindPairs(const NodeFacts& facts, Topology& topology) {
  for (size_t gpu = 0; gpu < topology.devices.size(); ++gpu) {
    if (topology.devices[gpu].kind != DeviceKind::kGpu) continue;
    Distance nearest = Distance::kPxb;  // what is farther is no pair
    const auto is_nic = [&](size_t i) { return topology.devices[i].kind == DeviceKind::kNic; };
    for (size_t i = 0; i < topology.devices.size(); ++i) {
      if (is_nic(i)) nearest = std::min(nearest, topology.distances[gpu][i]);
    }
    for (size_t i = 0; i < topology.devices.size(); ++i) {
      if (!is_nic(i) || topology.distances[gpu][i] != nearest) continue;
      const PciDevice& a = *FindDevice(facts, topology.devices[gpu].address);
      const PciDevice& b = *FindDevice(facts, topology.devices[i].address);
      topology.pairs.push_back(
          {.gpu = gpu, .nic = i, .distance = nearest, .below = Below(facts, a, b)});
    }
  }
}

}  // namespace

std::string_view Name(DeviceKind kind) { return kKinds[static_cast<size_t>(kind)].word; }

absl::StatusOr<Topology> MakeTopology(const Picture& picture, std::vector<NumaNode> numa,
                                      const std::vector<std::string>& selectors) {
  const Places places = PlacesOf(picture.plan);
  ASSIGN_OR_RETURN(const std::vector<const PciDevice*> chosen,
                   Choose(picture.facts, places, selectors));
  Topology topology{.numa = std::move(numa)};
  std::map<DeviceKind, int> counts;
  for (const PciDevice* device : chosen) {
    topology.devices.push_back(Describe(picture, places, *device));
    TopologyDevice& described = topology.devices.back();
    described.name = absl::StrFormat("%s%d", kKinds[static_cast<size_t>(described.kind)].prefix,
                                     counts[described.kind]++);
    std::vector<Distance>& row = topology.distances.emplace_back();
    for (const PciDevice* other : chosen) {
      row.push_back(DistanceBetween(picture.facts, topology.numa, *device, *other));
    }
  }
  FindPairs(picture.facts, topology);
  topology.boards = FindNvlinkBoards(picture.facts);
  return topology;
}

}  // namespace vfio_agent
