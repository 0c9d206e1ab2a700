#include "agent/cluster/checkpoint_pods.h"

#include <nlohmann/json.hpp>

namespace vfio_agent {
namespace {

using nlohmann::json;

std::string TextAt(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

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

}  // namespace

std::string PodUidOf(std::string_view checkpoint, const std::string& container,
                     const std::string& resource, const std::string& unit) {
  const auto shallow = [](int depth, json::parse_event_t, json&) { return depth <= kDeepest; };
  const json document = json::parse(checkpoint, shallow, false);
  const json* const data = Find(document, "Data");
  const json* const entries = data == nullptr ? nullptr : Find(*data, "PodDeviceEntries");
  if (entries == nullptr || !entries->is_array()) return "";
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
