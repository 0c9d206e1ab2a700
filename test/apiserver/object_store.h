// ObjectStore: objects by path, with versions, patches and the history that watches are served
// from.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace vfio_agent {

// "/api/v1/nodes/n1/status" in its parts; "/apis/events.k8s.io/v1/namespaces/default/events" has no
// name.
struct ApiPath {
  std::string collection;  // "/api/v1/nodes"
  std::string resource;    // "nodes"
  std::string name;
  std::string subresource;  // "status"
  std::string object() const { return collection + "/" + name; }
};

// nullopt for what is no path of an object or a collection.
std::optional<ApiPath> ParseApiPath(const std::string& path);

// The path's parts of a query, percent signs resolved.
std::map<std::string, std::string> ParseQuery(const std::string& query);

// True where every "a.b=c" of a field selector holds; an empty one always.
bool Matches(const nlohmann::json& object, const std::string& selector);

struct StoreAnswer {
  int code = 200;
  nlohmann::json body;
};

// A Status as Kubernetes sends it.
StoreAnswer Refusal(int code, const std::string& reason, const std::string& message);

class ObjectStore {
 public:
  struct Change {
    int64_t version = 0;
    std::string collection;
    std::string type;  // "ADDED", "MODIFIED", "DELETED"
    nlohmann::json object;
  };

  StoreAnswer Get(const ApiPath& path) const;
  // At most `limit` of them, 0 being all, and then in "continue" the word for the rest, which is as
  // it is now until Compact(): 410 from then on.
  StoreAnswer List(const ApiPath& path, const std::string& selector, size_t limit = 0);
  StoreAnswer ListOn(const std::string& token, size_t limit);
  StoreAnswer Create(const ApiPath& path, nlohmann::json object);
  // Put in place of what is there; with another resourceVersion in it: 409.
  StoreAnswer Replace(const ApiPath& path, nlohmann::json object);
  // By content type: a merge patch, or server-side apply as `manager`.
  StoreAnswer Patch(const ApiPath& path, const std::string& type, const std::string& manager,
                    const nlohmann::json& patch);
  StoreAnswer Delete(const ApiPath& path);

  // Changes after `version`, in order; nullopt where they have been forgotten.
  std::optional<std::vector<Change>> Since(int64_t version, const std::string& collection) const;
  // Forgets the history.
  void Compact() { history_.clear(), pages_.clear(), compacted_ = version_; }
  int64_t version() const { return version_; }

 private:
  // What a list has told so far is not in `items`.
  struct Pages {
    int64_t version = 0;
    std::vector<nlohmann::json> items;
  };
  StoreAnswer Store(const ApiPath& path, const std::string& type, nlohmann::json object);
  StoreAnswer Page(Pages pages, size_t limit);

  int64_t version_ = 1000;
  int64_t compacted_ = 1000;
  std::map<std::string, nlohmann::json> objects_;                          // by path
  std::map<std::pair<std::string, std::string>, nlohmann::json> applied_;  // by path and manager
  std::vector<Change> history_;
  std::map<std::string, Pages> pages_;  // by the word for them
  int tokens_ = 0;
};

}  // namespace vfio_agent
