#include "test/apiserver/patch.h"

#include <algorithm>

namespace vfio_agent {
namespace {

using Json = nlohmann::json;

bool IsMapList(const Json& list) {
  return list.is_array() && !list.empty() && std::ranges::all_of(list, [](const Json& item) {
           return item.is_object() && item.contains("type");
         });
}

Json* FindItem(Json& list, const Json& type) {
  for (Json& item : list) {
    if (item.is_object() && item.value("type", Json()) == type) return &item;
  }
  return nullptr;
}

const Json* FindItem(const Json& list, const Json& type) {
  return FindItem(const_cast<Json&>(list), type);  // it changes nothing
}

void RemoveOwned(const Json& before, const Json& wanted, Json& object);

void RemoveItems(const Json& before, const Json& wanted, Json& list) {
  for (const Json& item : before) {
    Json* const there = FindItem(list, item["type"]);
    if (there == nullptr) continue;
    const Json* const kept = wanted.is_array() ? FindItem(wanted, item["type"]) : nullptr;
    if (kept != nullptr) {
      RemoveOwned(item, *kept, *there);
    } else {
      list.erase(list.begin() + (there - &list[0]));
    }
  }
}

void RemoveOwned(const Json& before, const Json& wanted, Json& object) {
  if (!before.is_object() || !object.is_object()) return;
  for (const auto& [key, value] : before.items()) {
    if (!object.contains(key)) continue;
    const Json kept = wanted.is_object() ? wanted.value(key, Json()) : Json();
    if (value.is_object()) {
      RemoveOwned(value, kept, object[key]);
    } else if (IsMapList(value)) {
      RemoveItems(value, kept, object[key]);
    } else if (kept.is_null()) {
      object.erase(key);
    }
  }
}

void Set(const Json& wanted, Json& object) {
  for (const auto& [key, value] : wanted.items()) {
    Json& there = object[key];
    if (value.is_object()) {
      if (!there.is_object()) there = Json::object();
      Set(value, there);
    } else if (IsMapList(value)) {
      if (!there.is_array()) there = Json::array();
      for (const Json& item : value) {
        Json* const same = FindItem(there, item["type"]);
        if (same != nullptr) {
          Set(item, *same);
        } else {
          there.push_back(item);
        }
      }
    } else {
      there = value;
    }
  }
}

}  // namespace

void MergePatch(const Json& patch, Json& object) { object.merge_patch(patch); }

void ServerSideApply(const Json& before, const Json& wanted, Json& object) {
  RemoveOwned(before, wanted, object);
  Set(wanted, object);
}

}  // namespace vfio_agent
