// A simulated node whose resources are served by claims: the daemon, a fake API server, and both
// sides of a fake kubelet.
#pragma once

#include <csignal>
#include <filesystem>
#include <memory>
#include <string>

#include "agent/dra/claim_store.h"
#include "test/agent/node.h"
#include "test/apiserver/fake_api_server.h"
#include "test/dra/claim_json.h"
#include "test/kubelet/fake_dra.h"

namespace vfio_agent {

class DraNode {
 public:
  static constexpr absl::Duration kLong = absl::Seconds(60);
  static constexpr char kSlices[] = "/apis/resource.k8s.io/v1/resourceslices";
  static constexpr char kByClaims[] = "resources: [{preset: nvidia, serve: dra}]\n";
  static constexpr char kUnit[] = "0000:1b:00.0";
  static constexpr char kClaim[] = "/apis/resource.k8s.io/v1/namespaces/team/resourceclaims/vm-gpu";

  // `text`: the machine's; empty: one with eight GPUs. `device`: what the claim is allocated.
  explicit DraNode(const std::string& config_text = kByClaims, const std::string& text = "",
                   const std::string& device = "0000-1b-00-0")
      : node(text.empty() ? Node("hgx-8gpu") : Node(Node::MachineText{text})) {
    std::filesystem::create_directories(node.kubelet_root() + "/plugins_registry");
    api.AddNode("node-1");
    api.WriteServiceAccount(account.path());
    api.Create(kClaim, ClaimJson(claim, {{"gpu", device}}));
    claim.uid = api.Get(kClaim).at("metadata").at("uid");  // which the server gives
    Configure(config_text);
    kubelet = node.StartKubelet();
  }
  void Configure(const std::string& text) { config = node.dir().Write("config.yaml", text); }
  std::unique_ptr<Daemon> Start() const {
    return std::make_unique<Daemon>(node.DaemonArguments(
        {"--config", config, "--cdi-dir", node.dir().path() + "/cdi", "--api-server", api.url(),
         "--api-token-file", account.path() + "/token", "--api-ca-file", account.path() + "/ca.crt",
         "--node-name", "node-1"}));
  }
  std::unique_ptr<FakeDra> Register() const {
    auto dra = std::make_unique<FakeDra>(
        FakeDra::Options{.dir = node.kubelet_root() + "/plugins_registry"});
    REQUIRE(dra->Register("vfio-agent", kLong) == "");
    return dra;
  }
  bool WaitDevices(size_t count) const {
    return api.WaitFor(
        [&] {
          size_t devices = 0;
          for (const nlohmann::json& slice : api.List(kSlices)) {
            devices += slice.at("spec").value("devices", nlohmann::json::array()).size();
          }
          return devices == count;
        },
        kLong);
  }
  // As the slices have them; null for no such device.
  nlohmann::json AttributesOf(const std::string& name) const {
    for (const nlohmann::json& slice : api.List(kSlices)) {
      for (const nlohmann::json& device :
           slice.at("spec").value("devices", nlohmann::json::array())) {
        if (device.at("name") == name) return device.at("attributes");
      }
    }
    return nullptr;
  }
  // "ready", "held" and so on.
  std::string StateOf(const std::string& unit) const {
    const nlohmann::json list = node.RunJson({"list", "resources", "--config", config});
    for (const nlohmann::json& resource : list.at("resources")) {
      for (const nlohmann::json& each : resource.at("units")) {
        if (each.at("id") == unit) return each.at("state");
      }
    }
    return "";
  }

  // What the kubelet was told of the claim: "" or why not.
  std::string Prepare() const {
    const auto answers = Register()->Prepare({claim});
    return answers.ok() ? answers->at(claim.uid).error : std::string(answers.status().message());
  }
  std::string Unprepare() const {
    const auto errors = Register()->Unprepare({claim});
    return errors.ok() ? errors->at(claim.uid) : std::string(errors.status().message());
  }
  // A field of the Node's PassthroughReady; "" without one.
  std::string Condition(const char* field) const {
    const nlohmann::json shown = api.Get("/api/v1/nodes/node-1");
    for (const nlohmann::json& each : shown.at("status").at("conditions")) {
      if (each.at("type") == "PassthroughReady") return each.at(field);
    }
    return "";
  }
  bool HasSpec() const {
    return std::filesystem::exists(node.dir().path() + "/cdi/dra-claim_vfio-agent_" + claim.uid +
                                   ".json");
  }

  ClaimRef claim = {.claim_namespace = "team", .name = "vm-gpu"};
  Node node;
  FakeApiServer api;
  ScratchDir account;
  std::string config;
  std::unique_ptr<FakeKubelet> kubelet;
};

}  // namespace vfio_agent
