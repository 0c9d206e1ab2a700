// A configuration that changes under a daemon at work.
#include <csignal>

#include "absl/strings/str_split.h"
#include "test/agent/config_mount.h"
#include "test/agent/exposition.h"
#include "test/agent/http_get.h"
#include "test/agent/node.h"

namespace vfio_agent {
namespace {

constexpr absl::Duration kLong = absl::Seconds(60);
constexpr char kFirst[] = "0000:17:00.0";
constexpr char kSecond[] = "0000:65:00.0";
constexpr char kOne[] = "resources: [{select: [{address: \"0000:17:00.0\"}]}]\n";
constexpr char kBoth[] = "resources: [{select: [{vendor: \"10de\"}]}]\n";

// A daemon with its first device bound. No picture is taken but those that something asks for.
struct Reloading {
  Reloading() {
    REQUIRE(Eventually([&] { return node.DriverOf(kFirst) == "vfio-pci"; }, kLong));
    REQUIRE_FALSE(daemon.WaitForLine({"event=group_ready", "group="}, kLong).empty());
  }
  double Metric(const std::string& name) const {
    const std::string line = daemon.WaitForLine({"metrics are served on", "port "}, kLong);
    const int port = std::atoi(line.c_str() + line.rfind("port ") + 5);
    return ReadExposition(HttpGet(port, "/metrics").body).samples["vfio_agent_" + name];
  }
  bool Says(const std::vector<std::string>& parts) const {
    return !daemon.WaitForLine(parts, kLong).empty();
  }

  Node node{"cases/BIND-13"};
  ConfigMount mount{node.dir().path() + "/etc", kOne};
  Daemon daemon{node.DaemonArguments(
      {"--config", mount.file(), "--resync", "300s", "--metrics-listen", "127.0.0.1:0"})};
};

// The number of the first line with all of `parts`; -1 for none.
int LineOf(const std::string& log, const std::vector<std::string>& parts) {
  int number = 0;
  for (const auto& line : absl::StrSplit(log, '\n')) {
    if (std::ranges::all_of(parts, [&line](const std::string& part) {
          return std::string(line).find(part) != std::string::npos;
        })) {
      return number;
    }
    ++number;
  }
  return -1;
}

TEST_CASE("a changed ConfigMap is in force without a signal: first told as a plan, then done",
          "[node][grpc]") {
  Reloading reloading;
  CHECK(reloading.node.DriverOf(kSecond) == "nvidia");
  reloading.mount.Put(kBoth);
  REQUIRE(Eventually([&] { return reloading.node.DriverOf(kSecond) == "vfio-pci"; }, kLong));
  const std::string log = reloading.daemon.Log();
  INFO(log);
  const int plan = LineOf(log, {"event=config_plan", kSecond, "change=\"will be bound\""});
  const int reloaded =
      LineOf(log, {"event=config_reloaded", "why=\"the file has changed\"", "changes=1"});
  REQUIRE(plan >= 0);
  CHECK(reloaded > plan);
  CHECK(LineOf(log, {"event=bind_started", kSecond}) > reloaded);
  CHECK(reloading.Metric("config_reloads_total{result=\"ok\"}") == 1);
}

TEST_CASE("a ConfigMap that is not valid is refused once, counted, and the old one stays",
          "[node][grpc]") {
  Reloading reloading;
  reloading.mount.Put("resources: 5\n");
  REQUIRE(reloading.Says({"event=config_rejected", "config.yaml:1:", "want a list",
                          "next=\"the old configuration stays in force\""}));
  CHECK(Eventually(
      [&] { return reloading.Metric("config_reloads_total{result=\"rejected\"}") == 1; }, kLong));
  CHECK(reloading.node.DriverOf(kSecond) == "nvidia");
  reloading.mount.Put(kBoth);
  CHECK(Eventually([&] { return reloading.node.DriverOf(kSecond) == "vfio-pci"; }, kLong));
  INFO(reloading.daemon.Log());
  CHECK(reloading.daemon.CountLines({"event=config_rejected"}) == 1);
}

TEST_CASE("a file that has gone is no order to serve the built-in defaults", "[node][grpc]") {
  const Reloading reloading;
  std::filesystem::remove(reloading.mount.file());
  REQUIRE(reloading.Says({"event=config_rejected", "why=\"the file has gone\"", "No such file"}));
  CHECK(reloading.node.DriverOf(kSecond) == "nvidia");
  CHECK(reloading.daemon.CountLines({"event=config_plan"}) == 0);
}

TEST_CASE("what a new configuration takes away is told before the kubelet hears of it",
          "[node][grpc]") {
  Reloading reloading;
  reloading.mount.Put("resources: [{select: [{vendor: \"1234\"}]}]\n");
  REQUIRE(reloading.Says({"event=group_left"}));
  const std::string log = reloading.daemon.Log();
  INFO(log);
  const int plan = LineOf(
      log, {"event=config_plan", kFirst, "change=\"no longer served\"", "devices stay bound"});
  REQUIRE(plan >= 0);
  CHECK(LineOf(log, {"event=group_left"}) > plan);
  CHECK(reloading.node.DriverOf(kFirst) == "vfio-pci");
}

TEST_CASE("settings that count only at the start are named, and the others count at once",
          "[node][grpc]") {
  Reloading reloading;
  reloading.mount.Put(std::string(kOne) +
                      "kubelet: {registration: registry}\nlog: {format: json}\n");
  REQUIRE(reloading.Says({"event=config_kept", "settings=kubelet.registration", "restart"}));
  CHECK(reloading.Says({"\"event\":\"config_reloaded\"", "\"changes\":\"0\""}));
  // Back again: nothing is kept from it.
  reloading.mount.Put(kOne);
  REQUIRE(Eventually([&] { return reloading.Metric("config_reloads_total{result=\"ok\"}") == 2; },
                     kLong));
  INFO(reloading.daemon.Log());
  CHECK(reloading.daemon.CountLines({"config_kept"}) == 1);
}

}  // namespace
}  // namespace vfio_agent
