// What commands and probes say of a mode that is being switched, or that nobody knows.
#include <fstream>

#include "test/agent/http_get.h"
#include "test/mode/mode_nodes.h"

namespace vfio_agent {
namespace {

constexpr char kByLabel[] =
    "mode: {fromNodeLabel: nvidia.com/gpu.workload.config, default: vm-passthrough}\n";

int PortOf(const Daemon& daemon) {
  const std::string line = daemon.WaitForLine({"metrics are served on", "port "}, ModeNode::kLong);
  return line.empty() ? 0 : std::atoi(line.c_str() + line.rfind("port ") + 5);
}

std::string RunWithConfig(const ModeNode& node, std::vector<std::string> words) {
  words.insert(words.end(), {"--config", node.node().dir().path() + "/config.yaml"});
  return node.node().Run(std::move(words)).out;
}

TEST_CASE("a switch under way is seen by list and doctor: who is waited for", "[mode]") {
  ModeNode node;
  node.Start(ModeNode::kPassthrough);
  REQUIRE(node.Healthy(2));
  node.SetPod(1);
  node.Switch(ModeNode::kContainer);
  REQUIRE(node.Says({"event=mode_switching", "mode=container", "why=\"waits for pod team/vm"}));
  CHECK(Eventually(
      [&] {
        const std::string list = RunWithConfig(node, {"list", "resources", "-o", "wide"});
        return list.find("withheld") != std::string::npos &&
               list.find("mode: switching to container: waits for pod team/vm") !=
                   std::string::npos &&
               list.find("  ready") == std::string::npos;
      },
      ModeNode::kLong));
  const std::string doctor = RunWithConfig(node, {"doctor", "-o", "wide"});
  CHECK_THAT(doctor, Catch::Contains("vm-passthrough -> container (switching since ") &&
                         Catch::Contains("waits for pod team/vm") &&
                         Catch::Contains("nothing is evicted"));
}

TEST_CASE("without a daemon a list goes by what the last one has left", "[mode]") {
  ModeNode node;
  REQUIRE(node.node().Run({"bind"}).exit_code == 0);
  node.Write(kByLabel);
  const auto list = [&] { return RunWithConfig(node, {"list", "resources", "-o", "wide"}); };
  CHECK_THAT(list(), Catch::Contains("ready") && !Catch::Contains("withheld"));
  std::ofstream(node.node().state_dir() + "/mode.json")
      << R"({"schema": "vfio-agent/mode/v1", "mode": "vm-passthrough", "target": "container"})";
  CHECK_THAT(list(), Catch::Contains("withheld") &&
                         Catch::Contains("mode: switching to container") &&
                         !Catch::Contains("  ready"));
}

TEST_CASE("a label that was never read is doctor's failure, and /readyz says so", "[mode]") {
  ModeNode node;
  node.Start(kByLabel, {"--metrics-listen", "127.0.0.1:0"});
  REQUIRE(node.Says({"event=mode_switching", "has not been read"}));
  std::string doctor;
  Eventually(
      [&] {
        doctor = RunWithConfig(node, {"doctor", "-o", "wide"});
        return doctor.find("has not been read since") != std::string::npos;
      },
      ModeNode::kLong);
  CHECK_THAT(doctor, Catch::Contains("nvidia.com/gpu.workload.config has not been read since"));
  CHECK_THAT(doctor, Catch::Contains("api.enabled"));
  const int port = PortOf(node.daemon());
  CHECK(Eventually([&] { return HttpGet(port, "/readyz").code == 200; }, ModeNode::kLong));
  CHECK_THAT(HttpGet(port, "/readyz").body,
             Catch::Contains("ready; ") && Catch::Contains("has not been read"));
  CHECK_THAT(HttpGet(port, "/metrics").body, Catch::Contains("vfio_agent_mode_label_unread 1\n"));
}

TEST_CASE("plan says what a mode gives back, explain that it gives nothing", "[mode]") {
  ModeNode node;
  REQUIRE(node.node().Run({"bind"}).exit_code == 0);
  node.Write(ModeNode::kPassthrough);
  CHECK_THAT(RunWithConfig(node, {"plan"}), !Catch::Contains("# mode"));
  node.Write(ModeNode::kContainer);
  CHECK_THAT(RunWithConfig(node, {"plan"}),
             Catch::Contains("# mode container: nothing is given to guests\n"
                             "#   goes back, once nobody has it: " +
                             FaultNode::AddressOf(1, 0) + "\n") &&
                 Catch::Contains("goes back, once nobody has it: " + FaultNode::AddressOf(2, 0)));
  CHECK_THAT(RunWithConfig(node, {"explain", FaultNode::AddressOf(1, 0)}),
             Catch::Contains("it could be given away, but not now: mode container gives no whole"));
}

}  // namespace
}  // namespace vfio_agent
