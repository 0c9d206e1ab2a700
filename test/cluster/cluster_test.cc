// A Cluster and an API server that is well: what each sees of the other.
#include "agent/cluster/cluster.h"

#include <catch2/catch.hpp>

#include "sysfs/clock.h"
#include "sysfs/status.h"
#include "test/cluster/support.h"

namespace vfio_agent {
namespace {

constexpr char kMode[] = "nvidia.com/gpu.workload.config";

nlohmann::json LabelPatch(const std::string& key, const nlohmann::json& value) {
  return {{"metadata", {{"labels", {{key, value}}}}}};
}

nlohmann::json ConditionPatch(const std::string& status) {
  return {{"status",
           {{"conditions",
             nlohmann::json::array({{{"type", "PassthroughReady"}, {"status", status}}})}}}};
}

}  // namespace

TEST_CASE("the Node is shown, and each change of its labels, which wakes the loop") {
  ClusterStand stand;
  stand.Start();
  CHECK(stand.WaitForLabel(kMode, "vm-passthrough"));
  CHECK(stand.WaitFor([&] { return stand.cluster().Status().connected; }));
  const int wakes = stand.wakes();
  stand.server().Merge(kNodePath, LabelPatch(kMode, "container"));
  CHECK(stand.WaitForLabel(kMode, "container"));
  CHECK(stand.wakes() > wakes);
  stand.server().Merge(kNodePath, LabelPatch(kMode, nullptr));
  CHECK(stand.WaitForLabel(kMode, ""));
  CHECK(stand.Notes().empty());
  const ClusterStatus status = stand.cluster().Status();
  CHECK(status.server == stand.server().url());
  CHECK(status.last_error.empty());
  CHECK(status.requests.at({"list", "200"}) == 1);
}

TEST_CASE("a Node that goes is shown as none, and is shown again when it comes back") {
  ClusterStand stand;
  stand.Start();
  CHECK(stand.WaitForLabel(kMode, "vm-passthrough"));
  stand.server().Delete(kNodePath);
  CHECK(stand.WaitFor([&] {
    const auto node = stand.cluster().TakeNode();
    return node && node->uid.empty();
  }));
  stand.server().AddNode(kNode, {{kMode, "container"}});
  CHECK(stand.WaitForLabel(kMode, "container"));
}

TEST_CASE("a name that no Node has is told, with what to set, and is the last error") {
  ClusterStand stand;
  stand.options().node_name = "gpu-2";
  Cluster& cluster = stand.Start();
  CHECK(stand.WaitFor([&] { return stand.Notes().find("no Node gpu-2") != std::string::npos; }));
  CHECK(stand.Notes().find("set api.nodeName or NODE_NAME") != std::string::npos);
  CHECK(cluster.Status().last_error == kNoSuchNode);
  CHECK(cluster.Status().last_error_at > absl::InfinitePast());
  stand.server().AddNode("gpu-2");
  CHECK(stand.WaitFor([&] { return stand.Notes().find("a Node gpu-2 now") != std::string::npos; }));
  CHECK(cluster.Status().last_error.empty());
}

TEST_CASE("other Nodes are not asked for, and their changes are nobody's news") {
  ClusterStand stand;
  stand.server().AddNode("gpu-2");
  stand.Start();
  CHECK(stand.WaitForLabel(kMode, "vm-passthrough"));
  for (const HttpCall& call : stand.server().Calls()) {
    CHECK(call.query.find("fieldSelector=metadata.name%3Dgpu-1") != std::string::npos);
  }
}

TEST_CASE("a heartbeat of the kubelet's is no news") {
  ClusterStand stand;
  stand.Start();
  CHECK(stand.WaitForLabel(kMode, "vm-passthrough"));
  stand.server().Merge(kNodePath, {{"status", {{"images", {1, 2, 3}}}}});
  stand.server().Merge(kNodePath, LabelPatch("a", "b"));
  std::optional<SeenNode> node;
  CHECK(stand.WaitFor([&] {
    if (!node) node = stand.cluster().TakeNode();
    return node.has_value();
  }));
  CHECK(node->labels.at("a") == "b");
}

TEST_CASE("what is wanted is written by server-side apply, and taken back likewise") {
  ClusterStand stand;
  Cluster& cluster = stand.Start();
  cluster.Want(
      {.condition = Ready(), .labels = {{"vfio-agent/mode.state", "ready"}}, .keeps_labels = true});
  CHECK(stand.WaitFor([&] { return cluster.Status().written; }));
  CHECK(stand.ConditionField("status") == "True");
  CHECK(stand.ConditionField("reason") == "AllServed");
  CHECK(stand.Label("vfio-agent/mode.state") == "ready");
  CHECK(stand.Label("kubernetes.io/hostname") == kNode);
  for (const HttpCall& call : stand.server().Calls()) {
    if (call.method != "PATCH") continue;
    CHECK(call.type == "application/apply-patch+yaml");
    CHECK(call.query == "fieldManager=vfio-agent&force=true");
  }
  cluster.Want({.keeps_labels = true});
  CHECK(stand.WaitFor([&] { return stand.ConditionField("status").empty(); }));
  CHECK(stand.WaitFor([&] { return stand.Label("vfio-agent/mode.state").empty(); }));
  CHECK(stand.server().Get(kNodePath)["status"]["conditions"].size() == 1);
}

TEST_CASE("what is wanted and there already is written once, and not again") {
  ClusterStand stand;
  Cluster& cluster = stand.Start();
  cluster.Want({.condition = Ready()});
  CHECK(stand.WaitFor([&] { return cluster.Status().written; }));
  const int writes = stand.server().Count("PATCH", kNodePath);
  for (int i = 0; i < 20; ++i) cluster.Want({.condition = Ready()});
  stand.server().Merge(kNodePath, LabelPatch("a", "b"));
  CHECK(stand.WaitForLabel("a", "b"));
  CHECK(stand.server().Count("PATCH", kNodePath) == writes);
}

TEST_CASE("what somebody else has changed is put right again, once") {
  ClusterStand stand;
  Cluster& cluster = stand.Start();
  cluster.Want(
      {.condition = Ready(), .labels = {{"vfio-agent/mode.state", "ready"}}, .keeps_labels = true});
  CHECK(stand.WaitFor([&] { return cluster.Status().written; }));
  const int writes = stand.server().Count("PATCH", kNodePath);
  stand.server().Merge(kNodePath, ConditionPatch("False"));
  CHECK(stand.WaitFor([&] { return stand.ConditionField("message") == "2 of 2"; }));
  stand.server().Merge(kNodePath, LabelPatch("vfio-agent/mode.state", "blocked"));
  CHECK(stand.WaitFor([&] { return stand.Label("vfio-agent/mode.state") == "ready"; }));
  stand.server().Merge(kNodePath, LabelPatch("vfio-agent/other", "x"));
  CHECK(stand.WaitFor([&] { return stand.Label("vfio-agent/other").empty(); }));
  CHECK(stand.server().Count("PATCH", kNodePath) == writes + 3);
}

TEST_CASE("somebody who insists is told of, and costs ever fewer requests") {
  ClusterStand stand;
  stand.options().times.rewrite_pause = absl::Milliseconds(5);
  Cluster& cluster = stand.Start();
  cluster.Want({.condition = Ready()});
  CHECK(stand.WaitFor([&] { return cluster.Status().written; }));
  CHECK(stand.WaitFor([&] {
    if (stand.ConditionField("status") == "True") {
      stand.server().Merge(kNodePath, ConditionPatch("False"));
    }
    return stand.Notes().find("somebody else changes this Node's condition") != std::string::npos;
  }));
}

TEST_CASE("the condition's heartbeat goes on while nothing changes") {
  ClusterStand stand;
  stand.options().times.heartbeat = absl::Milliseconds(30);
  Cluster& cluster = stand.Start();
  cluster.Want({.condition = Ready()});
  CHECK(stand.WaitFor([&] { return stand.server().Count("PATCH", kNodePath) >= 4; }));
  CHECK(stand.Notes().empty());
}

TEST_CASE("without a token, a server or a name there is no Cluster, and the reason is told") {
  const auto refusal = [](const ClusterOptions& options) {
    return Message(Cluster::Start(options, [] {}).status());
  };
  const AccountDir dir;
  ClusterOptions options = {
      .node_name = kNode, .server = "https://127.0.0.1:1", .token_file = dir.path() + "/token"};
  CHECK(refusal(options) == "no token of a service account: " + dir.path() + "/token");
  options.node_name = "Not A Node";
  CHECK(refusal(options) == "the node's name is not known (NODE_NAME)");
  options.server = "http://127.0.0.1:1";
  CHECK(refusal(options).find("is no address of an API server") != std::string::npos);
}

TEST_CASE("what is queued is posted before the end, and the end comes in its time") {
  ClusterStand stand;
  Cluster& cluster = stand.Start();
  cluster.Want({.condition = Ready("Unknown")});
  cluster.Post({TestEvent("gpu-1.a"), TestEvent("gpu-1.b"), TestEvent("gpu-1.c")});
  const absl::Time start = MonotonicNow();
  cluster.Shutdown(absl::Seconds(10));
  CHECK(MonotonicNow() - start < absl::Seconds(5));
  CHECK(stand.server().List(kEvents).size() == 3);
  CHECK(stand.ConditionField("status") == "Unknown");
  const int wakes = stand.wakes();
  stand.server().Merge(kNodePath, LabelPatch("a", "b"));
  CHECK(stand.wakes() == wakes);
}

TEST_CASE("a wish of the last moment is written before the end") {
  ClusterStand stand;
  Cluster& cluster = stand.Start();
  cluster.Want({.condition = Ready("Unknown")});
  cluster.Shutdown(absl::Seconds(10));
  CHECK(stand.ConditionField("status") == "Unknown");
}

}  // namespace vfio_agent
