// A cluster of one Node, as the fake API server has it, and a daemon's way to it.
#pragma once

#include <string>
#include <vector>

#include "test/agent/node.h"
#include "test/apiserver/fake_api_server.h"

namespace vfio_agent {

inline constexpr char kNodePath[] = "/api/v1/nodes/gpu-7";
inline constexpr char kNodeEvents[] = "/apis/events.k8s.io/v1/namespaces/default/events";

class Cluster7 {
 public:
  static constexpr absl::Duration kPatience = absl::Seconds(60);

  Cluster7() {
    api.WriteServiceAccount(account.path());
    api.AddNode("gpu-7", {{"zone", "a"}});
  }
  std::vector<std::string> Arguments(const Node& node, std::vector<std::string> more = {}) const {
    more.insert(more.end(),
                {"--api-server", api.url(), "--api-token-file", account.path() + "/token",
                 "--api-ca-file", account.path() + "/ca.crt", "--node-name", "gpu-7"});
    return node.DaemonArguments(more);
  }
  // Null where the Node has none.
  nlohmann::json Condition() const {
    const nlohmann::json node = api.Get(kNodePath);
    for (const nlohmann::json& each : node.at("status").at("conditions")) {
      if (each.at("type") == "PassthroughReady") return each;
    }
    return nullptr;
  }
  bool WaitForCondition(const std::string& status, const std::string& reason) const {
    return Eventually(
        [&] {
          const nlohmann::json condition = Condition();
          return !condition.is_null() && condition.at("status") == status &&
                 condition.at("reason") == reason;
        },
        kPatience);
  }
  std::vector<nlohmann::json> Events(const std::string& reason,
                                     const char* where = kNodeEvents) const {
    std::vector<nlohmann::json> events = api.List(where);
    std::erase_if(events,
                  [&](const nlohmann::json& event) { return event.at("reason") != reason; });
    return events;
  }
  std::string Label(const std::string& key) const {
    return api.Get(kNodePath).at("metadata").at("labels").value(key, "");
  }

  FakeApiServer api;
  ScratchDir account;
};

}  // namespace vfio_agent
