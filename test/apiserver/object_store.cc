#include "test/apiserver/object_store.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "absl/strings/str_format.h"
#include "test/apiserver/patch.h"

namespace vfio_agent {
namespace {

using Json = nlohmann::json;

constexpr size_t kNote = 1024;

std::vector<std::string> SplitAt(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

std::string Decode(const std::string& text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      plain += static_cast<char>(std::strtol(text.substr(i + 1, 2).c_str(), nullptr, 16));
      i += 2;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

StoreAnswer NotFound(const ApiPath& path) {
  return Refusal(404, "NotFound", absl::StrFormat("%s \"%s\" not found", path.resource, path.name));
}

// What the API server demands of an event (events.k8s.io/v1), the rules that one can break.
std::string FaultOfEvent(const Json& event) {
  const auto text = [&event](const char* key) { return event.value(key, std::string()); };
  if (text("note").size() > kNote) return "note: can have at most 1024 bytes";
  if (text("eventTime").empty()) return "eventTime: Required value";
  if (text("action").empty()) return "action: Required value";
  if (text("reason").empty()) return "reason: Required value";
  if (text("reportingController").empty()) return "reportingController: Required value";
  if (text("reportingInstance").empty()) return "reportingInstance: Required value";
  if (text("type") != "Normal" && text("type") != "Warning") return "type: Unsupported value";
  const std::string about = event.value(Json::json_pointer("/regarding/namespace"), std::string());
  const std::string in = event.value(Json::json_pointer("/metadata/namespace"), std::string());
  if (about.empty() ? in != "default" : in != about) return "metadata.namespace: does not match";
  if (event.contains("series") && event["series"].value("count", 0) < 2) {
    return "series.count: should be at least 2";
  }
  return "";
}

}  // namespace

std::optional<ApiPath> ParseApiPath(const std::string& path) {
  const std::vector<std::string> parts = SplitAt(path, '/');  // the first one is empty
  size_t at = parts.size() > 1 && parts[1] == "apis" ? 4 : 3;
  if (parts.size() > at + 2 && parts[at] == "namespaces") at += 2;
  if (parts.size() <= at || parts.size() > at + 3) return std::nullopt;
  ApiPath parsed{.resource = parts[at]};
  for (size_t i = 1; i <= at; ++i) parsed.collection += "/" + parts[i];
  if (parts.size() > at + 1) parsed.name = parts[at + 1];
  if (parts.size() > at + 2) parsed.subresource = parts[at + 2];
  return parsed;
}

std::map<std::string, std::string> ParseQuery(const std::string& query) {
  std::map<std::string, std::string> parsed;
  for (const std::string& part : SplitAt(query, '&')) {
    const size_t equals = part.find('=');
    parsed[part.substr(0, equals)] =
        equals == std::string::npos ? "" : Decode(part.substr(equals + 1));
  }
  return parsed;
}

bool Matches(const Json& object, const std::string& selector) {
  for (const std::string& term : SplitAt(selector, ',')) {
    const size_t equals = term.find('=');
    std::string pointer = "/" + term.substr(0, equals);
    std::ranges::replace(pointer, '.', '/');
    if (object.value(Json::json_pointer(pointer), std::string()) != term.substr(equals + 1)) {
      return false;
    }
  }
  return true;
}

StoreAnswer Refusal(int code, const std::string& reason, const std::string& message) {
  return {code,
          {{"kind", "Status"},
           {"apiVersion", "v1"},
           {"status", "Failure"},
           {"message", message},
           {"reason", reason},
           {"code", code}}};
}

StoreAnswer ObjectStore::Get(const ApiPath& path) const {
  const auto found = objects_.find(path.object());
  return found == objects_.end() ? NotFound(path) : StoreAnswer{200, found->second};
}

StoreAnswer ObjectStore::List(const ApiPath& path, const std::string& selector, size_t limit) {
  Pages pages{.version = version_};
  for (const auto& [key, object] : objects_) {
    if (ParseApiPath(key)->collection == path.collection && Matches(object, selector)) {
      pages.items.push_back(object);
    }
  }
  return Page(std::move(pages), limit);
}

StoreAnswer ObjectStore::ListOn(const std::string& token, size_t limit) {
  const auto found = pages_.find(token);
  if (found != pages_.end()) return Page(found->second, limit);
  return Refusal(410, "Expired", "The provided continue parameter is too old");
}

StoreAnswer ObjectStore::Page(Pages pages, size_t limit) {
  const size_t told = limit == 0 ? pages.items.size() : std::min(limit, pages.items.size());
  const auto end = pages.items.begin() + static_cast<std::ptrdiff_t>(told);
  const Json items(std::vector<Json>(pages.items.begin(), end));
  pages.items.erase(pages.items.begin(), end);
  Json metadata = {{"resourceVersion", absl::StrFormat("%d", pages.version)}};
  if (!pages.items.empty()) {
    // Not a word that may stand in a query as it is.
    const std::string token = absl::StrFormat("%d&=+/%d", pages.version, ++tokens_);
    metadata["continue"] = token;
    metadata["remainingItemCount"] = pages.items.size();
    pages_[token] = std::move(pages);
  }
  return {200, {{"kind", "List"}, {"apiVersion", "v1"}, {"metadata", metadata}, {"items", items}}};
}

StoreAnswer ObjectStore::Store(const ApiPath& path, const std::string& type, Json object) {
  object["metadata"]["resourceVersion"] = absl::StrFormat("%d", ++version_);
  history_.push_back({version_, path.collection, type, object});
  if (type == "DELETED") {
    objects_.erase(path.object());
  } else {
    objects_[path.object()] = object;
  }
  return {type == "ADDED" ? 201 : 200, std::move(object)};
}

StoreAnswer ObjectStore::Create(const ApiPath& path, Json object) {
  ApiPath full = path;
  if (full.name.empty()) full.name = object["metadata"].value("name", std::string());
  if (full.name.empty()) return Refusal(422, "Invalid", "metadata.name: Required value");
  if (objects_.contains(full.object())) {
    return Refusal(409, "AlreadyExists",
                   absl::StrFormat("%s \"%s\" already exists", full.resource, full.name));
  }
  if (full.resource == "events") {
    const std::string fault = FaultOfEvent(object);
    if (!fault.empty()) return Refusal(422, "Invalid", "Event is invalid: " + fault);
  }
  object["metadata"]["name"] = full.name;
  object["metadata"]["uid"] = absl::StrFormat("00000000-0000-4000-8000-%012d", version_ + 1);
  return Store(full, "ADDED", std::move(object));
}

StoreAnswer ObjectStore::Replace(const ApiPath& path, Json object) {
  const auto found = objects_.find(path.object());
  if (found == objects_.end()) return NotFound(path);
  const Json& there = found->second["metadata"];
  const std::string version = object["metadata"].value("resourceVersion", std::string());
  if (!version.empty() && version != there["resourceVersion"]) {
    return Refusal(409, "Conflict", "the object has been modified");
  }
  object["metadata"]["uid"] = there["uid"];
  object["metadata"]["resourceVersion"] = there["resourceVersion"];
  if (object == found->second) return {200, object};
  return Store(path, "MODIFIED", std::move(object));
}

StoreAnswer ObjectStore::Patch(const ApiPath& path, const std::string& type,
                               const std::string& manager, const Json& patch) {
  const auto found = objects_.find(path.object());
  if (found == objects_.end()) {
    if (type != "application/apply-patch+yaml" || !path.subresource.empty()) return NotFound(path);
    applied_[{path.object() + "/", manager}] = patch;
    return Create(path, patch);
  }
  Json object = found->second;
  if (type == "application/apply-patch+yaml") {
    if (manager.empty()) return Refusal(400, "BadRequest", "fieldManager: Required value");
    Json& before = applied_[{path.object() + "/" + path.subresource, manager}];
    ServerSideApply(before, patch, object);
    before = patch;
  } else if (type == "application/merge-patch+json") {
    MergePatch(patch, object);
  } else {
    return Refusal(415, "UnsupportedMediaType", "a patch of the type " + type);
  }
  // Each of the two has its own half of the object.
  const bool status = path.subresource == "status";
  Json result = status ? found->second : object;
  if (status) {
    result["status"] = object["status"];
  } else if (found->second.contains("status")) {
    result["status"] = found->second["status"];
  }
  return Replace(path, std::move(result));
}

StoreAnswer ObjectStore::Delete(const ApiPath& path) {
  const auto found = objects_.find(path.object());
  if (found == objects_.end()) return NotFound(path);
  return Store(path, "DELETED", Json(found->second));
}

std::optional<std::vector<ObjectStore::Change>> ObjectStore::Since(
    int64_t version, const std::string& collection) const {
  if (version < compacted_) return std::nullopt;
  std::vector<Change> changes;
  for (const Change& change : history_) {
    if (change.version > version && change.collection == collection) changes.push_back(change);
  }
  return changes;
}

}  // namespace vfio_agent
