#include "agent/cluster/checkpoint_pods.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "sysfs/proc_text.h"

namespace vfio_agent {
namespace {

using nlohmann::json;

std::string TextAt(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

constexpr size_t kLongestUid = 64;
constexpr size_t kLongestName = 63;
// Data, entries, entry, ids, NUMA node, id: nothing of a checkpoint lies deeper.
constexpr int kDeepest = 8;

// Since Kubernetes 1.20 {"<NUMA node>": [ids]}, before that [ids].
bool Names(const json& ids, const std::string& unit) {
  if (!ids.is_object() && !ids.is_array()) return false;
  for (const json& each : ids) {
    if (each.is_string() ? each.get_ref<const std::string&>() == unit : Names(each, unit)) {
      return true;
    }
  }
  return false;
}

// Null where the text has none.
const json* Find(const json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

json Parse(std::string_view checkpoint) {
  const auto shallow = [](int depth, json::parse_event_t, json&) { return depth <= kDeepest; };
  return json::parse(checkpoint, shallow, false);
}

// Null where the text has none. Of a node without any it is null in the text, as Go has it.
const json* EntriesOf(const json& document) {
  const json* const data = Find(document, "Data");
  const json* const entries = data == nullptr ? nullptr : Find(*data, "PodDeviceEntries");
  return entries != nullptr && (entries->is_array() || entries->is_null()) ? entries : nullptr;
}

void AddIds(const json& ids, std::vector<std::string>& units) {
  if (!ids.is_object() && !ids.is_array()) return;
  for (const json& each : ids) {
    if (!each.is_string()) {
      AddIds(each, units);
    } else if (std::string unit = UnitOfId(each.get_ref<const std::string&>()); !unit.empty()) {
      units.push_back(std::move(unit));
    }
  }
}

}  // namespace

std::optional<std::vector<PodClaim>> CheckpointClaims(std::string_view checkpoint) {
  const json document = Parse(checkpoint);
  const json* const entries = EntriesOf(document);
  if (entries == nullptr) return std::nullopt;
  std::vector<PodClaim> claims;
  for (const json& entry : *entries) {
    const json* const ids = Find(entry, "DeviceIDs");
    std::vector<std::string> units;
    if (ids != nullptr) AddIds(*ids, units);
    for (std::string& unit : units) {
      claims.push_back({.pod = Printable(TextAt(entry, "PodUID"), kLongestUid),
                        .container = Printable(TextAt(entry, "ContainerName"), kLongestName),
                        .resource = TextAt(entry, "ResourceName"),
                        .unit = std::move(unit)});
      if (claims.back().container.empty()) claims.back().container = kPerhaps;
    }
  }
  std::ranges::sort(claims);
  return claims;
}

std::string PodUidOf(std::string_view checkpoint, const std::string& container,
                     const std::string& resource, const std::string& unit) {
  const json document = Parse(checkpoint);
  const json* const entries = EntriesOf(document);
  if (entries == nullptr) return "";
  std::string uid;
  for (const json& entry : *entries) {
    const json* const ids = Find(entry, "DeviceIDs");
    if (ids == nullptr || !Names(*ids, unit) || TextAt(entry, "ContainerName") != container ||
        TextAt(entry, "ResourceName") != resource) {
      continue;
    }
    const std::string found = TextAt(entry, "PodUID");
    if (!uid.empty() && uid != found) return "";
    uid = found;
  }
  return uid;
}

}  // namespace vfio_agent
