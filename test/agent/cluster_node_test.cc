// What the cluster is told by the daemon of a simulated node, with a fake API server over TLS.
#include <csignal>
#include <fstream>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "agent/cluster/checkpoint_pods.h"
#include "test/agent/cluster_node.h"

namespace vfio_agent {
namespace {

using Json = nlohmann::json;

constexpr absl::Duration kLong = absl::Seconds(30);
constexpr char kUnit[] = "0000:1b:00.0";

// A GPU beside a SATA controller that nobody selected.
constexpr char kForeign[] = R"(
name: foreign
host: {iommu_active: true, iommu: intel}
devices:
- {address: "0000:00:01.0", vendor: "8086", device: "0c01", class: "0x060400", driver: pcieport, iommu_group: 1}
- {address: "0000:01:00.0", vendor: "10de", device: "1187", class: "0x030000", driver: nvidia, iommu_group: 1, parent: "0000:00:01.0"}
- {address: "0000:01:01.0", vendor: "8086", device: "2922", class: "0x010601", driver: ahci, iommu_group: 1, parent: "0000:00:01.0"}
)";

// How long the daemon took to end.
absl::Duration End(Daemon& daemon, absl::Duration limit) {
  const absl::Time start = absl::Now();
  daemon.Signal(SIGTERM);
  CHECK(daemon.WaitForEnd(limit) == 0);
  return absl::Now() - start;
}

// What a daemon says last has less than two seconds. Where a busy machine may have taken them,
// another one is started and ended, once.
void EndWithLastWords(const Cluster7& cluster, const Node& node, Daemon& daemon,
                      const std::vector<std::string>& arguments, absl::Duration limit) {
  if (End(daemon, limit) < absl::Milliseconds(1500)) return;
  Daemon another(arguments);
  REQUIRE_FALSE(another.WaitForLine({"event=registered"}, kLong).empty());
  REQUIRE(Eventually(
      [&node] { return node.RunJson({"status"}).at("cluster").at("written") == true; }, kLong));
  REQUIRE(cluster.WaitForCondition("True", "Serving"));
  End(another, limit);
}

TEST_CASE("the Node is ready once its units are registered, and not while the kubelet is away",
          "[cluster][node][grpc]") {
  const Node node("hgx-8gpu");
  const Cluster7 cluster;
  Daemon daemon(cluster.Arguments(node));
  INFO(daemon.Log());
  REQUIRE(cluster.WaitForCondition("False", "KubeletDown"));
  auto kubelet = node.StartKubelet();
  REQUIRE(cluster.WaitForCondition("True", "Serving"));
  CHECK(cluster.Condition().at("message") == std::string("8 ") + kH100);
  CHECK(Eventually([&] { return cluster.Label("vfio-agent/GH100_H100_SXM5_80GB.healthy") == "8"; },
                   kLong));
  CHECK(cluster.Label("vfio-agent/passthrough.ready") == "true");
  CHECK(cluster.Label("zone") == "a");

  SECTION("a daemon that ends says so, and leaves the labels") {
    EndWithLastWords(cluster, node, daemon, cluster.Arguments(node), absl::Seconds(5));
    CHECK(cluster.Condition().at("status") == "Unknown");
    CHECK(cluster.Condition().at("reason") == "AgentStopped");
    CHECK(cluster.Label("vfio-agent/passthrough.ready") == "true");
  }
  SECTION("a kubelet that comes back at once makes no other condition, one that stays away does") {
    const Json before = cluster.Condition();
    kubelet->Stop();
    REQUIRE_FALSE(daemon.WaitForLine({"event=list_closed"}, kLong).empty());
    REQUIRE(kubelet->Start().ok());
    REQUIRE(kubelet->WaitHealthy(kH100, 8, kLong));
    CHECK(cluster.Condition().at("lastTransitionTime") == before.at("lastTransitionTime"));
    kubelet.reset();
    CHECK(cluster.WaitForCondition("False", "KubeletDown"));
  }
}

TEST_CASE("with onExit: release the labels go with the devices", "[cluster][node][grpc]") {
  const Node node("hgx-8gpu");
  const Cluster7 cluster;
  const auto kubelet = node.StartKubelet();
  const std::vector<std::string> arguments = cluster.Arguments(node, {"--on-exit", "release"});
  Daemon daemon(arguments);
  REQUIRE(
      Eventually([&] { return cluster.Label("vfio-agent/passthrough.ready") == "true"; }, kLong));
  EndWithLastWords(cluster, node, daemon, arguments, kLong);
  CHECK(cluster.Label("vfio-agent/passthrough.ready").empty());
  CHECK(cluster.Label("zone") == "a");
}

TEST_CASE(
    "a refused group is one Event with reason and remedy, and the Node says why it serves "
    "nothing",
    "[cluster][node][grpc]") {
  const Node node(Node::MachineText{kForeign});
  const Cluster7 cluster;
  const auto kubelet = node.StartKubelet();
  const Daemon daemon(cluster.Arguments(node));
  REQUIRE(cluster.WaitForCondition("False", "AllRefused"));
  CHECK_THAT(cluster.Condition().at("message").get<std::string>(),
             Catch::Contains("1 selected group is refused") && Catch::Contains("foreign-member"));
  REQUIRE(Eventually([&] { return !cluster.Events("ForeignMember").empty(); }, kLong));
  daemon.Signal(SIGHUP);  // one more picture for certain
  REQUIRE_FALSE(daemon.WaitForLine({"event=config_reloaded"}, kLong).empty());
  REQUIRE(Eventually([&] { return !cluster.Events("ConfigReloaded").empty(); }, kLong));
  const std::vector<Json> events = cluster.Events("ForeignMember");
  REQUIRE(events.size() == 1);
  CHECK(events[0].at("type") == "Warning");
  CHECK(events[0].at("action") == "Plan");
  CHECK(events[0].at("regarding").at("name") == "gpu-7");
  CHECK_FALSE(events[0].contains("series"));
  CHECK_THAT(events[0].at("note").get<std::string>(), Catch::Contains("group 1 (") &&
                                                          Catch::Contains("0000:01:01.0") &&
                                                          Catch::Contains("Remedy: "));
}

TEST_CASE(
    "a bind that fails again and again is told in the log once, and is one Event with a count",
    "[cluster][node][grpc]") {
  const Node node("hgx-8gpu", "faults: [{device: \"0000:1b:00.0\", op: probe, errno: EINVAL}]\n");
  const Cluster7 cluster;
  const auto kubelet = node.StartKubelet();
  const Daemon daemon(cluster.Arguments(node));
  const auto counted = [&] {
    const std::vector<Json> events = cluster.Events("ProbeRefused");
    return !events.empty() && events[0].contains("series");
  };
  REQUIRE(Eventually(counted, absl::Minutes(1)));
  const std::vector<Json> events = cluster.Events("ProbeRefused");
  CHECK(events.size() == 1);
  CHECK(events[0].at("series").at("count").get<int>() >= 2);
  CHECK_THAT(events[0].at("note").get<std::string>(),
             Catch::Contains("0000:1b:00.0") && Catch::Contains("did not take") &&
                 Catch::Contains("try by hand: ") && Catch::Contains("Remedy: "));
  CHECK(daemon.CountLines({"event=bind_failed"}) == 1);
}

TEST_CASE("while the API server is away devices are served, and what is to be told is told later",
          "[cluster][node][grpc]") {
  const Node node("hgx-8gpu");
  Cluster7 cluster;
  cluster.api.Down();
  const auto kubelet = node.StartKubelet();
  Daemon daemon(cluster.Arguments(node));
  REQUIRE(kubelet->WaitHealthy(kH100, 8, kLong));
  CHECK(kubelet->Allocate(kH100, {kUnit}).ok());
  const Json away = node.RunJson({"status"}).at("cluster");
  CHECK(away.at("connected") == false);
  CHECK(away.at("server") == cluster.api.url());
  CHECK(away.at("node") == "gpu-7");
  cluster.api.Up();
  CHECK(cluster.WaitForCondition("True", "Serving"));
  CHECK(Eventually([&] { return cluster.Events("Bound").size() == 8; }, kLong));
  CHECK(Eventually(
      [&] {
        const Json now = node.RunJson({"status"}).at("cluster");
        return now.at("connected") == true && now.at("written") == true &&
               now.at("events").at("waiting") == 0;
      },
      kLong));
}

TEST_CASE("an API server that hangs keeps no daemon from ending in two seconds",
          "[cluster][node][grpc]") {
  const Node node("hgx-8gpu");
  Cluster7 cluster;
  const auto kubelet = node.StartKubelet();
  Daemon daemon(cluster.Arguments(node));
  REQUIRE(cluster.WaitForCondition("True", "Serving"));
  cluster.api.Add({.times = ApiFault::kAlways, .hang = true});
  daemon.Signal(SIGTERM);
  CHECK(daemon.WaitForEnd(absl::Seconds(5)) == 0);
  CHECK(daemon.CountLines({"event=agent_stopping"}) == 1);
}

TEST_CASE(
    "what a container's start was refused is told of its pod, with the uid of the kubelet's "
    "checkpoint",
    "[cluster][node][grpc]") {
  const Node node("hgx-8gpu");
  const Cluster7 cluster;
  const auto kubelet = node.StartKubelet();
  const Daemon daemon(cluster.Arguments(node));
  REQUIRE(kubelet->WaitHealthy(kH100, 8, kLong));
  REQUIRE(kubelet->Allocate(kH100, {kUnit}).ok());
  std::ofstream(node.kubelet_dir() + "/" + kKubeletCheckpoint) << absl::StrFormat(
      R"({"Data":{"PodDeviceEntries":[{"PodUID":"u-1","ContainerName":"compute","ResourceName":"%s",)"
      R"("DeviceIDs":{"0":["%s"]}}]}})",
      kH100, kUnit);
  kubelet->SetPod("team", "vm", "compute", kH100, {kUnit});
  node.Control("remove 0000:1b:00.0");
  daemon.Signal(SIGHUP);  // a simulated node sends no uevents
  REQUIRE(kubelet->WaitHealthy(kH100, 7, kLong));
  REQUIRE_FALSE(kubelet->PreStart(kH100, {kUnit}).ok());
  constexpr char kOfPods[] = "/apis/events.k8s.io/v1/namespaces/team/events";
  REQUIRE(Eventually([&] { return !cluster.api.List(kOfPods).empty(); }, kLong));
  const Json event = cluster.api.List(kOfPods).at(0);
  INFO(event.dump());
  CHECK(event.at("action") == "Start");
  CHECK(event.at("regarding").at("kind") == "Pod");
  CHECK(event.at("regarding").at("name") == "vm");
  CHECK(event.at("regarding").at("uid") == "u-1");
  // So that no right to read pods is needed.
  CHECK(cluster.api.Count("GET", "/api/v1/namespaces/team/pods") == 0);
}

TEST_CASE("what is switched off is not told", "[cluster][node][grpc]") {
  const Node node("hgx-8gpu");
  const Cluster7 cluster;
  const auto kubelet = node.StartKubelet();
  const std::string off = GENERATE("condition", "events", "labels");
  CAPTURE(off);
  const Daemon daemon(cluster.Arguments(node, {"--api-" + off, "false"}));
  const auto has = [&](const std::string& what) {
    if (what == "condition") return !cluster.Condition().is_null();
    if (what == "events") return !cluster.Events("Bound").empty();
    return !cluster.Label("vfio-agent/passthrough.ready").empty();
  };
  for (const std::string what : {"condition", "events", "labels"}) {
    if (what != off) CHECK(Eventually([&] { return has(what); }, kLong));
  }
  CHECK_FALSE(has(off));
}

TEST_CASE("labels that NFD or nobody is to make are neither written nor taken away",
          "[cluster][node][grpc]") {
  const Node node("hgx-8gpu");
  Cluster7 cluster;
  cluster.api.Merge(kNodePath, {{"metadata", {{"labels", {{"vfio-agent/iommu", "of-nfd"}}}}}});
  const auto kubelet = node.StartKubelet();
  std::vector<std::string> words = {"--on-exit", "release", "--api-labels", "false"};
  if (GENERATE(true, false)) {
    words = {"--on-exit", "release", "--nfd-dir", node.dir().path() + "/features.d"};
  }
  const std::vector<std::string> arguments = cluster.Arguments(node, words);
  Daemon daemon(arguments);
  REQUIRE(cluster.WaitForCondition("True", "Serving"));
  CHECK(cluster.Label("vfio-agent/passthrough.ready").empty());
  CHECK(cluster.Label("vfio-agent/iommu") == "of-nfd");
  EndWithLastWords(cluster, node, daemon, arguments, kLong);
  CHECK(cluster.Label("vfio-agent/iommu") == "of-nfd");
  CHECK_THAT(cluster.Condition().at("message").get<std::string>(), Catch::Contains("given back"));
}

TEST_CASE("without a token the agent goes without; it says so where a server is named",
          "[cluster][node][grpc]") {
  const Node node("hgx-8gpu");
  const auto kubelet = node.StartKubelet();
  const bool named = GENERATE(true, false);
  CAPTURE(named);
  const std::vector<std::string> words = {"--api-server", named ? "https://127.0.0.1:1" : "none",
                                          "--api-token-file", node.dir().path() + "/none"};
  const Daemon daemon(node.DaemonArguments(words));
  REQUIRE(kubelet->WaitHealthy(kH100, 8, kLong));
  CHECK(node.RunJson({"status"}).at("cluster").is_null());
  CHECK(daemon.CountLines({"event=note", "without the API server"}) == (named ? 1 : 0));
}

}  // namespace
}  // namespace vfio_agent
