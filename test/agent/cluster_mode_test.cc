// The mode by the Node's label, from the API server to the devices and back.
#include <csignal>

#include "test/agent/cluster_node.h"

namespace vfio_agent {
namespace {

constexpr absl::Duration kLong = absl::Seconds(60);
constexpr char kUnit[] = "0000:1b:00.0";
constexpr char kByLabel[] =
    "mode: {fromNodeLabel: nvidia.com/gpu.workload.config, default: container, settle: 100ms}\n";

struct LabelledNode {
  LabelledNode() : kubelet(node.StartKubelet()) {}

  void Label(const std::string& mode) {
    cluster.api.Merge(kNodePath,
                      {{"metadata", {{"labels", {{"nvidia.com/gpu.workload.config", mode}}}}}});
  }
  std::vector<std::string> Arguments() const {
    return cluster.Arguments(node, {"--config", node.dir().Write("config.yaml", kByLabel)});
  }
  bool IsWith(const std::string& driver) const {
    return Eventually([&] { return node.DriverOf(kUnit) == driver; }, kLong);
  }

  Node node{"hgx-8gpu"};
  Cluster7 cluster;
  std::unique_ptr<FakeKubelet> kubelet;
};

TEST_CASE(
    "a Node that is labelled for guests gives its devices to them, and takes them back when "
    "it is labelled for containers",
    "[cluster][mode][grpc]") {
  LabelledNode labelled;
  const Cluster7& cluster = labelled.cluster;
  labelled.Label("vm-passthrough");
  const Daemon daemon(labelled.Arguments());
  REQUIRE(labelled.IsWith("vfio-pci"));
  REQUIRE(cluster.WaitForCondition("True", "Serving"));
  CHECK(Eventually([&] { return cluster.Label("vfio-agent/mode.state") == "ready"; }, kLong));
  labelled.Label("container");
  REQUIRE(labelled.IsWith("nvidia"));
  CHECK(cluster.WaitForCondition("False", "ModeContainer"));
  CHECK(Eventually([&] { return cluster.Label("vfio-agent/mode") == "container"; }, kLong));
  CHECK(Eventually([&] { return !cluster.Events("ModeReady").empty(); }, kLong));
}

TEST_CASE("a release that does not return is the Node's label and condition until it has",
          "[cluster][mode][grpc]") {
  LabelledNode labelled;
  const Cluster7& cluster = labelled.cluster;
  const auto state_is = [&cluster](const std::string& state) {
    return Eventually([&] { return cluster.Label("vfio-agent/mode.state") == state; }, kLong);
  };
  labelled.Label("vm-passthrough");
  std::vector<std::string> arguments = labelled.Arguments();
  arguments.insert(arguments.end(), {"--unbind-timeout", "300ms"});
  const Daemon daemon(arguments);
  INFO(daemon.Log());
  REQUIRE(cluster.WaitForCondition("True", "Serving"));
  labelled.node.Control(std::string("fault {device: \"") + kUnit +
                        "\", op: unbind, block: forever, unkillable: true}");
  labelled.Label("container");
  REQUIRE(state_is("blocked"));
  CHECK(cluster.WaitForCondition("False", "ModeBlocked"));
  // On a busy machine other writes are late as well, and the message is of those at first.
  std::string message;
  Eventually(
      [&] {
        message = cluster.Condition().at("message").get<std::string>();
        return message.find("has not returned") != std::string::npos;
      },
      kLong);
  CHECK_THAT(message,
             Catch::Contains("to mode container; ") && Catch::Contains("has not returned"));
  labelled.node.Control("clear-faults");
  labelled.node.Control(std::string("release-blocked ") + kUnit);
  CHECK(state_is("ready"));
  CHECK(cluster.Label("vfio-agent/mode") == "container");
}

TEST_CASE("while the API server is away the mode stays as the label last was",
          "[cluster][mode][grpc]") {
  LabelledNode labelled;
  labelled.Label("vm-passthrough");
  const Daemon daemon(labelled.Arguments());
  REQUIRE(labelled.cluster.WaitForCondition("True", "Serving"));
  labelled.cluster.api.Down();
  labelled.Label("container");
  daemon.Signal(SIGHUP);  // one more picture for certain
  REQUIRE_FALSE(daemon.WaitForLine({"event=config_reloaded"}, kLong).empty());
  CHECK(labelled.node.DriverOf(kUnit) == "vfio-pci");
  CHECK(labelled.kubelet->WaitHealthy(kH100, 8, kLong));
  labelled.cluster.api.Up();
  CHECK(labelled.IsWith("nvidia"));
}

TEST_CASE("a label that a reload lets decide counts without having changed",
          "[cluster][mode][grpc]") {
  LabelledNode labelled;
  labelled.Label("container");
  const std::vector<std::string> arguments = labelled.Arguments();
  labelled.node.dir().Write("config.yaml", "mode: vm-passthrough\n");
  const Daemon daemon(arguments);
  REQUIRE(labelled.cluster.WaitForCondition("True", "Serving"));
  labelled.node.dir().Write("config.yaml", kByLabel);
  daemon.Signal(SIGHUP);
  CHECK(labelled.IsWith("nvidia"));
  CHECK(daemon.CountLines({"event=note", "nobody tells"}) == 0);
}

TEST_CASE("a label that names no mode is the configured default, and an Event",
          "[cluster][mode][grpc]") {
  LabelledNode labelled;
  labelled.Label("vm-pasthrough");
  const Daemon daemon(labelled.Arguments());
  CHECK(labelled.cluster.WaitForCondition("False", "ModeContainer"));
  REQUIRE(Eventually([&] { return !labelled.cluster.Events("ModeInvalid").empty(); }, kLong));
  CHECK_THAT(labelled.cluster.Events("ModeInvalid")[0].at("note").get<std::string>(),
             Catch::Contains("value vm-pasthrough") && Catch::Contains("Remedy: "));
  CHECK_THAT(labelled.node.Run({"status"}).out,
             Catch::Contains("mode: container (ready): label nvidia.com/gpu.workload.config="
                             "vm-pasthrough is no mode; the default is used"));
  CHECK(labelled.node.DriverOf(kUnit) == "nvidia");
}

TEST_CASE("an agent that may not see its Node says which rule lacks, and binds nothing",
          "[cluster][mode][grpc]") {
  LabelledNode labelled;
  labelled.Label("vm-passthrough");
  const int code = GENERATE(401, 403);
  labelled.cluster.api.Add({.path = "/api/v1/nodes", .times = ApiFault::kAlways, .code = code});
  const Daemon daemon(labelled.Arguments());
  const std::string words = code == 401 ? "does not know the token" : "may not see the Node";
  const std::string remedy = code == 401 ? "api.tokenFile" : "nodes: get, list, watch";
  std::string doctor;
  CHECK(Eventually(
      [&] {
        doctor = labelled.node.Run({"doctor", "-o", "wide"}).out;
        return doctor.find(words) != std::string::npos && doctor.find(remedy) != std::string::npos;
      },
      kLong));
  INFO(doctor);
  CHECK_THAT(doctor, Catch::Contains("has not been read since the start"));
  CHECK(labelled.node.DriverOf(kUnit) == "nvidia");
}

}  // namespace
}  // namespace vfio_agent
