// Two agents on one node, as for a moment in every rolling update: one works, the other waits.
#include <csignal>
#include <set>

#include "absl/strings/str_format.h"
#include "test/agent/fault_node.h"
#include "test/agent/http_get.h"

namespace vfio_agent {
namespace {

constexpr absl::Duration kLong = absl::Seconds(60);

std::set<std::string> NamesIn(const std::string& dir) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) {
    names.insert(entry.path().filename());
  }
  return names;
}

TEST_CASE("R10: a second agent waits, touches nothing, and takes over when the first has ended",
          "[matrix]") {
  const int signal = GENERATE(SIGTERM, SIGKILL);
  CAPTURE(signal);
  const FaultNode node(2);
  const auto kubelet = node.node().StartKubelet();
  Daemon first(node.node().DaemonArguments());
  REQUIRE(kubelet->WaitHealthy(kH100, 2, kLong));
  const std::vector<std::string> writes = node.WritesOf(2);
  const std::set<std::string> sockets = NamesIn(node.node().kubelet_dir());
  const int registrations = kubelet->Resources().at(kH100).registrations;

  const Daemon second(node.node().DaemonArguments());
  const std::string holder = absl::StrFormat("holder=\"pid %d\"", first.pid());
  REQUIRE_FALSE(second.WaitForLine({"event=agent_waiting", holder}, kLong).empty());
  CHECK(NamesIn(node.node().kubelet_dir()) == sockets);
  // Not even where there is something to do: that is the first one's.
  node.node().Control("rebind 0000:01:00.1 snd_hda_intel");
  REQUIRE(Eventually([&] { return node.IsTaken(1); }, kLong));
  // The child closes the record, and then the agent says so.
  CHECK(Eventually([&] { return first.CountLines({"event=bind_done", "group=1 "}) == 2; }, kLong));
  CHECK(second.CountLines({"event="}) == 1);
  CHECK(kubelet->Resources().at(kH100).registrations == registrations);
  CHECK(node.WritesOf(2) == writes);

  first.Signal(signal);
  CHECK(first.WaitForEnd(kLong) == (signal == SIGTERM ? 0 : 128 + SIGKILL));
  REQUIRE_FALSE(second.WaitForLine({"event=agent_started"}, kLong).empty());
  CHECK(kubelet->WaitFor(
      [&](const FakeResources& now) {
        return now.at(kH100).registrations > registrations && now.at(kH100).Healthy() == 2;
      },
      kLong));
  CHECK(second.CountLines({"event=agent_waiting"}) == 1);
}

TEST_CASE("R10: a second agent goes by the configuration as it is when it takes over", "[matrix]") {
  const FaultNode node(2);
  const auto kubelet = node.node().StartKubelet();
  const std::string config = node.node().dir().Write("config.yaml", "mode: vm-passthrough\n");
  const auto arguments = node.node().DaemonArguments({"--config", config});
  Daemon first(arguments);
  REQUIRE(kubelet->WaitHealthy(kH100, 2, kLong));
  const Daemon second(arguments);
  REQUIRE_FALSE(second.WaitForLine({"event=agent_waiting"}, kLong).empty());
  first.Signal(SIGSTOP);  // nobody acts on what follows
  node.node().dir().Write("config.yaml",
                          "resources: [{select: [{vendor: \"10de\"}], "
                          "exclude: [{address: \"0000:02:00.0\"}]}]\n");
  node.node().Control("rebind " + FaultNode::AddressOf(2, 0) + " nvidia");
  node.node().Control("rebind " + FaultNode::AddressOf(2, 1) + " snd_hda_intel");
  first.Signal(SIGKILL);
  REQUIRE_FALSE(second.WaitForLine({"event=config_reloaded"}, kLong).empty());
  CHECK(kubelet->WaitHealthy(kH100, 1, kLong));
  CHECK(second.CountLines({"event=bind_started", "group=2 "}) == 0);
  CHECK(node.node().DriverOf(FaultNode::AddressOf(2, 0)) == "nvidia");
}

TEST_CASE("SIGTERM ends an agent that waits at once, and the one at work goes on", "[matrix]") {
  const FaultNode node(1);
  const auto kubelet = node.node().StartKubelet();
  const Daemon first(node.node().DaemonArguments());
  REQUIRE(kubelet->WaitHealthy(kH100, 1, kLong));
  const std::string writes = node.node().Writes();
  const auto on_exit = GENERATE(as<std::string>(), "keep", "release");
  Daemon second(node.node().DaemonArguments({"--on-exit", on_exit}));
  REQUIRE_FALSE(second.WaitForLine({"event=agent_waiting"}, kLong).empty());
  second.Signal(SIGTERM);
  CHECK(second.WaitForEnd(absl::Seconds(5)) == 0);
  CHECK(node.IsTaken(1));
  CHECK(node.node().Writes() == writes);
  CHECK(kubelet->WaitHealthy(kH100, 1, kLong));
}

TEST_CASE("an agent that waits answers its probes: alive, not ready, and for whom it waits",
          "[matrix]") {
  const FaultNode node(1);
  const auto kubelet = node.node().StartKubelet();
  Daemon first(node.node().DaemonArguments());
  REQUIRE(kubelet->WaitHealthy(kH100, 1, kLong));
  const Daemon second(node.node().DaemonArguments({"--metrics-listen", "127.0.0.1:0"}));
  const std::string line = second.WaitForLine({"metrics are served on", "port "}, kLong);
  REQUIRE_FALSE(line.empty());
  const int port = std::atoi(line.c_str() + line.rfind("port ") + 5);
  INFO(second.Log());
  CHECK(HttpGet(port, "/healthz").code == 200);
  CHECK(Eventually(
      [&] { return HttpGet(port, "/readyz").body.find("waits for") != std::string::npos; }, kLong));
  const HttpAnswer ready = HttpGet(port, "/readyz");
  CHECK(ready.code == 503);
  CHECK_THAT(ready.body, Catch::Contains(absl::StrFormat("waits for the daemon with process "
                                                         "number %d",
                                                         first.pid())));
  const std::string metrics = HttpGet(port, "/metrics").body;
  CHECK_THAT(metrics, Catch::Contains("vfio_agent_waiting 1\n") &&
                          !Catch::Contains("vfio_agent_kubelet_up 0"));
  first.Signal(SIGTERM);
  CHECK(first.WaitForEnd(kLong) == 0);
  CHECK(Eventually([&] { return HttpGet(port, "/readyz").code == 200; }, kLong));
  CHECK_THAT(HttpGet(port, "/metrics").body, Catch::Contains("vfio_agent_waiting 0\n"));
}

TEST_CASE("a write that outlives its agent and does not return is told as such by the next one",
          "[matrix]") {
  const Node node("hgx-8gpu",
                  "faults: [{device: \"0000:1b:00.0\", op: unbind, block: forever, unkillable: "
                  "true, once: true}]\n");
  const auto kubelet = node.StartKubelet();
  const std::vector<std::string> arguments =
      node.DaemonArguments({"--unbind-timeout", "5s", "--node-timeout", "1s"});
  {
    Daemon first(arguments);
    REQUIRE_FALSE(
        first.WaitForLine({"event=bind_stuck", "0000:1b:00.0", "nvidia/unbind"}, kLong).empty());
    first.Signal(SIGTERM);
    REQUIRE(first.WaitForEnd(kLong) == 0);
  }
  const Daemon second(arguments);
  INFO(second.Log());
  CHECK_FALSE(second
                  .WaitForLine({"event=group_refused", "unbind-stuck",
                                "unbind of 0000:1b:00.0, by a vfio-agent process before this one"},
                               kLong)
                  .empty());
  const auto stuck = [&node] {
    const nlohmann::json jobs = node.RunJson({"status"}).at("jobs");
    return jobs.size() == 1 && jobs.at(0).at("state") == "stuck" && jobs.at(0).at("group") == 23;
  };
  CHECK(Eventually(stuck, kLong));
  node.Control("release-blocked 0000:1b:00.0");
  CHECK(kubelet->WaitHealthy(kH100, 8, kLong));
  CHECK(Eventually([&] { return node.RunJson({"status"}).at("jobs").empty(); }, kLong));
}

}  // namespace
}  // namespace vfio_agent
