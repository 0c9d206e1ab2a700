// A mode by label on a node where nobody says what the label is.
#include <fstream>

#include "test/mode/mode_nodes.h"

namespace vfio_agent {
namespace {

constexpr char kByLabel[] =
    "mode: {fromNodeLabel: nvidia.com/gpu.workload.config, default: vm-passthrough}\n";

void WriteLast(const ModeNode& node, const std::string& fields) {
  std::ofstream(node.node().state_dir() + "/mode.json")
      << "{\"schema\": \"vfio-agent/mode/v1\", " << fields << "}\n";
}

TEST_CASE("relabel first, then start: no device is bound before the label was read", "[mode]") {
  ModeNode node;
  SECTION("an agent that was never here") {}
  SECTION("one that was in vm-passthrough last") {
    WriteLast(node, "\"mode\": \"vm-passthrough\"");
  }
  node.Start(kByLabel);
  REQUIRE(node.Says({"event=mode_switching", "nvidia.com/gpu.workload.config has not been read",
                     "nothing is bound or given back"}));
  REQUIRE(node.Says({"event=note", "nobody tells this agent the node's label", "api.enabled"}));
  REQUIRE(node.Says({"event=group_to_bind", "group=2 "}));
  node.daemon().Signal(SIGHUP);  // one more picture for certain
  REQUIRE(node.Says({"event=config_reloaded"}));
  CHECK(node.node().Writes().empty());
  CHECK(node.ModeStatus()["label"] == "nvidia.com/gpu.workload.config");
}

TEST_CASE("what is bound is served by the last mode, and in container nothing is given back yet",
          "[mode]") {
  ModeNode node;
  REQUIRE(node.node().Run({"bind"}).exit_code == 0);
  const std::string writes = node.node().Writes();
  SECTION("vm-passthrough: all are offered") {
    WriteLast(node, "\"mode\": \"vm-passthrough\"");
    node.Start(kByLabel);
    CHECK(node.Healthy(2));
  }
  SECTION("on its way to container: none is given any more") {
    WriteLast(node, "\"mode\": \"vm-passthrough\", \"target\": \"container\"");
    node.Start(kByLabel);
    REQUIRE(node.kubelet().WaitFor(
        [](const FakeResources& resources) {
          return resources.contains(kH100) && resources.at(kH100).devices.size() == 2;
        },
        ModeNode::kLong));
    CHECK(node.kubelet().Resources().at(kH100).Healthy() == 0);
  }
  SECTION("container: none is offered") {
    WriteLast(node, "\"mode\": \"container\"");
    node.Start(kByLabel);
    REQUIRE(node.Says({"event=mode_switching", "has not been read"}));
    CHECK(node.kubelet().Resources().empty());
  }
  node.daemon().Signal(SIGHUP);
  REQUIRE(node.Says({"event=config_reloaded"}));
  CHECK(node.node().Writes() == writes);
}

TEST_CASE("a mode file that cannot be understood is told, and the default serves what is bound",
          "[mode]") {
  ModeNode node;
  REQUIRE(node.node().Run({"bind"}).exit_code == 0);
  node.node().Control("clear-faults");
  std::ofstream(node.node().state_dir() + "/mode.json") << std::string(100'000, '{');
  node.Start(kByLabel);
  CHECK(node.Healthy(2));
  CHECK(node.Says({"event=note", "mode.json", "no JSON object"}));
}

TEST_CASE("plan says by which mode it plans where a label decides", "[mode]") {
  ModeNode node;
  node.Write(kByLabel);
  const auto plan = [&] {
    return node.node().Run({"plan", "--config", node.node().dir().path() + "/config.yaml"});
  };
  CHECK_THAT(plan().err, Catch::Contains("nvidia.com/gpu.workload.config decides") &&
                             Catch::Contains("by vm-passthrough now, the default"));
  CHECK_THAT(plan().out, Catch::Contains("2 groups to bind"));
  WriteLast(node, "\"mode\": \"container\"");
  CHECK_THAT(plan().err, Catch::Contains("by container now, the last in force"));
  CHECK_THAT(plan().out, Catch::Contains("0 groups to bind"));
}

TEST_CASE("a mode that is fixed again is switched to without a label", "[mode]") {
  ModeNode node;
  REQUIRE(node.node().Run({"bind"}).exit_code == 0);
  WriteLast(node, "\"mode\": \"vm-passthrough\"");
  node.Start(kByLabel);
  REQUIRE(node.Healthy(2));
  node.Switch(ModeNode::kContainer);
  CHECK(node.AllHome());
  CHECK(node.Says({"event=mode_ready", "mode=container"}));
  std::string text;
  CHECK(Eventually(
      [&] {
        std::ifstream file(node.node().state_dir() + "/mode.json");
        std::getline(file, text);
        return text == R"({"mode":"container","schema":"vfio-agent/mode/v1"})";
      },
      ModeNode::kLong));
}

}  // namespace
}  // namespace vfio_agent
