#include "agent/dra/slices.h"

#include <algorithm>
#include <array>
#include <map>

#include "absl/strings/str_format.h"

namespace vfio_agent {
namespace {

// resource.k8s.io/v1, types.go: ResourceSliceMaxDevices, the same with taints or counters,
// ResourceSliceMaxCountersPerCounterSet, ResourceSliceMaxCounterSets.
constexpr size_t kMostDevices = 128;
constexpr size_t kMostDevicesWithMore = 64;
constexpr size_t kMostCounters = 32;
constexpr size_t kMostSets = 8;
constexpr size_t kLongestName = 253;
constexpr size_t kLongestValue = 63;  // of a taint

uint32_t Hash(std::string_view text) {
  uint32_t hash = 2166136261U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash;
}

// Where each shared group's counter is: in which set, by group.
using Counters = std::map<int, size_t>;

Counters CountersOf(const std::vector<DraDevice>& devices) {
  Counters counters;
  for (const DraDevice& device : devices) {
    for (const int group : device.shared_groups) counters.emplace(group, 0);
  }
  size_t position = 0;
  for (auto& entry : counters) entry.second = position++ / kMostCounters;
  return counters;
}

std::string SetName(size_t set) { return absl::StrFormat("groups-%d", set); }
std::string CounterName(int group) { return absl::StrFormat("group-%d", group); }

// A group is there once, and each of its devices needs the whole of it.
Json OneOf() { return {{"value", "1"}}; }

Json ConsumesOf(const DraDevice& device, const Counters& counters) {
  std::map<size_t, Json> sets;
  for (const int group : device.shared_groups) {
    sets[counters.at(group)][CounterName(group)] = OneOf();
  }
  Json list = Json::array();
  for (auto& [set, names] : sets) {
    list.push_back({{"counterSet", SetName(set)}, {"counters", std::move(names)}});
  }
  return list;
}

// Nobody is evicted: a machine that runs may go on, or be moved when its owner wants it.
Json TaintOf(const SlicePool& pool, const DraDevice& device) {
  return {{"key", pool.driver + "/unhealthy"},
          {"value", device.taint.substr(0, kLongestValue)},
          {"effect", "NoSchedule"}};
}

Json DeviceToSlice(const SlicePool& pool, const DraDevice& device, const Counters& counters) {
  Json json = {{"name", device.name}, {"attributes", AttributesToJson(device)}};
  for (const auto& [name, bytes] : device.capacity) {
    json["capacity"][name] = {{"value", Quantity(bytes)}};
  }
  if (!device.shared_groups.empty()) json["consumesCounters"] = ConsumesOf(device, counters);
  if (!device.taint.empty()) json["taints"] = Json::array({TaintOf(pool, device)});
  return json;
}

// The last part of a slice's spec: {"sharedCounters": …} or {"devices": …}.
void AddCounterParts(const Counters& counters, std::vector<Json>& parts) {
  std::map<size_t, Json> sets;
  for (const auto& [group, set] : counters) sets[set][CounterName(group)] = OneOf();
  for (auto& [set, names] : sets) {
    if (set % kMostSets == 0) parts.push_back({{"sharedCounters", Json::array()}});
    parts.back()["sharedCounters"].push_back(
        {{"name", SetName(set)}, {"counters", std::move(names)}});
  }
}

void AddDeviceParts(const SlicePool& pool, const std::vector<DraDevice>& devices,
                    const Counters& counters, std::vector<Json>& parts) {
  const bool more = !counters.empty() || std::ranges::any_of(devices, [](const DraDevice& device) {
    return !device.taint.empty();
  });
  const size_t most = more ? kMostDevicesWithMore : kMostDevices;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (i % most == 0) parts.push_back({{"devices", Json::array()}});
    parts.back()["devices"].push_back(DeviceToSlice(pool, devices[i], counters));
  }
}

// A DNS subdomain, however long the node's name is.
std::string SliceName(const SlicePool& pool, size_t index) {
  std::string base = absl::StrFormat("%s-%s", pool.node, pool.driver);
  constexpr size_t kRoom = kLongestName - 12;
  if (base.size() > kRoom) {
    base = absl::StrFormat("%s%08x", base.substr(0, kRoom - 8), Hash(base));
  }
  return absl::StrFormat("%s-%d", base, index);
}

Json SliceOf(const SlicePool& pool, size_t index, size_t count, Json part) {
  const std::string content = absl::StrFormat(
      "%08x", Hash(absl::StrFormat("%s %s %d", DumpJson(part), pool.node_uid, count)));
  Json spec = {
      {"driver", pool.driver},
      {"nodeName", pool.node},
      {"pool",
       {{"name", pool.node}, {"generation", pool.generation}, {"resourceSliceCount", count}}}};
  spec.update(part);
  Json metadata = {{"name", SliceName(pool, index)},
                   {"annotations", {{kContentAnnotation, content}}}};
  if (!pool.node_uid.empty()) {
    metadata["ownerReferences"] = Json::array({{{"apiVersion", "v1"},
                                                {"kind", "Node"},
                                                {"name", pool.node},
                                                {"uid", pool.node_uid},
                                                {"controller", true}}});
  }
  return {{"apiVersion", kSliceApi},
          {"kind", "ResourceSlice"},
          {"metadata", std::move(metadata)},
          {"spec", std::move(spec)}};
}

}  // namespace

std::vector<Json> MakeSlices(const SlicePool& pool, const std::vector<DraDevice>& devices) {
  const Counters counters = CountersOf(devices);
  std::vector<Json> parts;
  AddCounterParts(counters, parts);
  AddDeviceParts(pool, devices, counters, parts);
  std::vector<Json> slices;
  for (size_t i = 0; i < parts.size(); ++i) {
    slices.push_back(SliceOf(pool, i, parts.size(), std::move(parts[i])));
  }
  return slices;
}

std::string Quantity(uint64_t bytes) {
  constexpr std::array<const char*, 7> kUnits = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
  size_t unit = 0;
  while (bytes != 0 && bytes % 1024 == 0 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return absl::StrFormat("%d%s", bytes, kUnits[unit]);
}

}  // namespace vfio_agent
