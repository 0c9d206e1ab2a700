// What a running daemon tells of itself: status, health and metrics, on a simulated node.
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <thread>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "deviceplugin/grpc/channel.h"
#include "deviceplugin/status/status_server.h"
#include "proto/health.grpc.pb.h"
#include "test/agent/exposition.h"
#include "test/agent/http_get.h"
#include "test/agent/node.h"

namespace vfio_agent {
namespace {

namespace health = grpc::health::v1;

constexpr absl::Duration kLong = absl::Seconds(60);
constexpr char kUnit[] = "0000:1b:00.0";
const std::vector<std::string> kHttp = {"--metrics-listen", "127.0.0.1:0"};

// The port that the kernel chose; 0 where there is no such line.
int PortOf(const Daemon& daemon) {
  const std::string line = daemon.WaitForLine({"metrics are served on", "port "}, kLong);
  return line.empty() ? 0 : std::atoi(line.c_str() + line.rfind("port ") + 5);
}

struct Watched {
  explicit Watched(std::vector<std::string> more = kHttp)
      : daemon(node.DaemonArguments(std::move(more))) {}
  std::string socket() const { return node.state_dir() + "/status.sock"; }
  ProgramResult Status() const { return node.Run({"status"}); }
  ProgramResult Wide() const { return node.Run({"status", "-o", "wide"}); }
  bool WaitForHttp(const std::string& path, int code) const {
    const int port = PortOf(daemon);
    return Eventually([&] { return HttpGet(port, path).code == code; }, kLong);
  }

  Node node{"hgx-8gpu"};
  Daemon daemon;
};

health::HealthCheckResponse::ServingStatus AskHealth(const std::string& socket,
                                                     const std::string& service,
                                                     grpc::StatusCode& code) {
  const auto channel = Dial(socket);
  REQUIRE(channel.ok());
  grpc::ClientContext context;
  health::HealthCheckRequest request;
  request.set_service(service);
  health::HealthCheckResponse response;
  code = health::Health::NewStub(*channel)->Check(&context, request, &response).error_code();
  return response.status();
}

TEST_CASE("status, its document and the metrics say which pod of which namespace has a unit",
          "[node][grpc]") {
  const Watched watched;
  const auto kubelet = watched.node.StartKubelet();
  INFO(watched.daemon.Log());
  REQUIRE(kubelet->WaitHealthy(kH100, 8, kLong));
  kubelet->SetPod("team", "vm", "compute", kH100, {kUnit});
  REQUIRE_FALSE(watched.daemon.WaitForLine({"event=unit_held", kUnit}, kLong).empty());
  const std::string pod = "pod team/vm (container compute)";
  CHECK(Eventually([&] { return absl::StrContains(watched.Wide().out, pod); }, kLong));
  CHECK(watched.Wide().exit_code == 0);
  CHECK(watched.WaitForHttp("/readyz", 200));
  const nlohmann::json document = watched.node.RunJson({"status"});
  CHECK(document.at("ready") == true);
  int held = 0;
  for (const auto& unit : document.at("resources").at(0).at("units")) {
    if (unit.at("pods").empty()) continue;
    ++held;
    CHECK(unit.at("id") == kUnit);
    CHECK(unit.at("state") == "held");
    CHECK(unit.at("pods").at(0).at("namespace") == "team");
    CHECK(unit.at("pods").at(0).at("pod") == "vm");
  }
  CHECK(held == 1);

  const HttpAnswer answer = HttpGet(PortOf(watched.daemon), "/metrics");
  const Exposed exposed = ReadExposition(answer.body);
  CHECK(exposed.faults == std::vector<std::string>());
  CHECK(std::ranges::count_if(exposed.samples, [](const auto& sample) {
          return sample.first.starts_with("vfio_agent_unit_held{") &&
                 sample.first.find("namespace=\"team\",pod=\"vm\",container=\"compute\"") !=
                     std::string::npos;
        }) == 1);
}

TEST_CASE("metrics count binds, registrations, allocations and readings of the node",
          "[node][grpc]") {
  const Watched watched;
  const auto kubelet = watched.node.StartKubelet();
  INFO(watched.daemon.Log());
  REQUIRE(kubelet->WaitHealthy(kH100, 8, kLong));
  REQUIRE(kubelet->Allocate(kH100, {kUnit}).ok());
  CHECK_FALSE(kubelet->Allocate(kH100, {"0000:00:00.0"}).ok());
  const int port = PortOf(watched.daemon);
  const std::string of = std::string("{resource=\"") + kH100 + "\",result=\"";
  Exposed exposed;
  CHECK(Eventually(
      [&] {
        exposed = ReadExposition(HttpGet(port, "/metrics").body);
        return exposed.samples["vfio_agent_allocations_total" + of + "refused\"}"] == 1;
      },
      kLong));
  CHECK(exposed.samples["vfio_agent_allocations_total" + of + "ok\"}"] == 1);
  CHECK(exposed.samples["vfio_agent_allocate_duration_seconds_count"] == 1);
  CHECK(exposed.samples["vfio_agent_registrations_total" + of + "ok\"}"] >= 1);
  CHECK(exposed.samples["vfio_agent_binds_total{result=\"ok\",code=\"\"}"] >= 8);
  CHECK(exposed.samples["vfio_agent_bind_duration_seconds_count"] ==
        exposed.samples["vfio_agent_binds_total{result=\"ok\",code=\"\"}"]);
  CHECK(exposed.samples["vfio_agent_rescans_total{trigger=\"start\"}"] == 1);
  CHECK(exposed.samples["vfio_agent_last_reconcile_timestamp_seconds"] > 1.6e9);
}

TEST_CASE("drift is counted when a device goes back to its host driver", "[node][grpc]") {
  const Watched watched;
  const auto kubelet = watched.node.StartKubelet();
  INFO(watched.daemon.Log());
  REQUIRE(kubelet->WaitHealthy(kH100, 8, kLong));
  watched.node.Control(std::string("rebind ") + kUnit + " nvidia");
  const int port = PortOf(watched.daemon);
  CHECK(Eventually(
      [&] {
        const Exposed exposed = ReadExposition(HttpGet(port, "/metrics").body);
        return exposed.samples.contains("vfio_agent_drift_total{kind=\"driver-changed\"}");
      },
      kLong));
}

TEST_CASE("R57: an agent without a kubelet is healthy, not ready, and says so", "[node][grpc]") {
  const Watched watched;
  INFO(watched.daemon.Log());
  REQUIRE(Eventually([&] { return absl::StrContains(watched.Status().out, "8 bound"); }, kLong));
  CHECK(HttpGet(PortOf(watched.daemon), "/healthz").code == 200);
  const HttpAnswer ready = HttpGet(PortOf(watched.daemon), "/readyz");
  CHECK(ready.code == 503);
  CHECK_THAT(ready.body, Catch::Contains(std::string(kH100) + " is not registered"));
  CHECK_THAT(watched.Status().out, Catch::Contains("kubelet: nobody answers on its socket"));
  grpc::StatusCode code = grpc::StatusCode::UNKNOWN;
  CHECK(AskHealth(watched.socket(), "", code) == health::HealthCheckResponse::SERVING);
  CHECK(code == grpc::StatusCode::OK);
}

TEST_CASE(
    "R57: ready once every resource is registered, not while the kubelet is down, healthy always",
    "[node][grpc]") {
  const Watched watched;
  const auto kubelet = watched.node.StartKubelet();
  INFO(watched.daemon.Log());
  REQUIRE(kubelet->WaitHealthy(kH100, 8, kLong));
  CHECK(watched.WaitForHttp("/readyz", 200));
  kubelet->Stop();
  CHECK(watched.WaitForHttp("/readyz", 503));
  CHECK(HttpGet(PortOf(watched.daemon), "/healthz").code == 200);
  REQUIRE(kubelet->Start().ok());
  CHECK(watched.WaitForHttp("/readyz", 200));
}

TEST_CASE(
    "a kubelet that was killed and left its socket behind is told to be down, until it is back",
    "[node][grpc]") {
  const Watched watched;
  const auto kubelet = watched.node.StartKubelet();
  INFO(watched.daemon.Log());
  REQUIRE(kubelet->WaitHealthy(kH100, 8, kLong));
  const int port = PortOf(watched.daemon);
  const auto shows = [&](const std::string& line) {
    return HttpGet(port, "/metrics").body.find("vfio_agent_kubelet_up " + line) !=
           std::string::npos;
  };
  CHECK(Eventually([&] { return shows("1\n"); }, kLong));
  CHECK_THAT(watched.Status().out, Catch::Contains("kubelet: up;"));
  kubelet->Stop(true);
  CHECK(Eventually([&] { return shows("0\n"); }, absl::Seconds(10)));
  CHECK_THAT(watched.Status().out, Catch::Contains("kubelet: nobody answers on its socket;"));
  const HttpAnswer ready = HttpGet(port, "/readyz");
  CHECK(ready.code == 503);
  CHECK_THAT(ready.body, Catch::Contains("nobody answers on the kubelet's socket\n"));
  REQUIRE(kubelet->Start().ok());
  CHECK(Eventually([&] { return shows("1\n"); }, kLong));
  CHECK(watched.WaitForHttp("/readyz", 200));
}

TEST_CASE("HTTP has three pages, for reading only", "[node][grpc]") {
  const Watched watched;
  const int port = PortOf(watched.daemon);
  INFO(watched.daemon.Log());
  CHECK(HttpGet(port, "/").code == 404);
  CHECK(HttpGet(port, "/etc/passwd").code == 404);
  CHECK(HttpGet(port, "/metrics/x").code == 404);
  CHECK(HttpGet(port, "/metrics", "POST").code == 405);
  CHECK(HttpGet(port, "/metrics", "HEAD").code == 200);
  CHECK(HttpGet(port, "/metrics", "HEAD").body.empty());
}

TEST_CASE("health answers while silent connections fill the port of the metrics", "[node][grpc]") {
  const Watched watched;
  INFO(watched.daemon.Log());
  const int port = PortOf(watched.daemon);
  std::vector<Fd> silent;
  for (int i = 0; i < 64; ++i) {
    silent.push_back(ConnectTo(port));
    REQUIRE(silent.back().valid());
  }
  const ProgramResult result = watched.node.Run({"health"});
  CHECK(result.exit_code == 0);
  CHECK(result.out == "ok\n");
  CHECK(result.err.empty());
  // They are given up one by one, and then the pages are there again.
  CHECK(watched.WaitForHttp("/healthz", 200));
}

TEST_CASE("health and status are about the daemon: a broken configuration file does not count",
          "[node][grpc]") {
  const Watched watched;
  INFO(watched.daemon.Log());
  REQUIRE(Eventually([&] { return watched.Status().exit_code == 0; }, kLong));
  const std::string file = watched.node.dir().path() + "/broken.yaml";
  for (const char* broken : {"resources: [", "apiVersion: vfio-agent/v1\nresync: never\n"}) {
    std::ofstream(file) << broken;
    const ProgramResult status = watched.node.Run({"status", "--config", file});
    CHECK(status.exit_code == 0);
    CHECK_THAT(status.err, Catch::Contains("broken.yaml") && Catch::Contains("keeps"));
    CHECK(watched.node.Run({"health", "--config", file}).exit_code == 0);
  }
  std::ofstream(file) << "stateDir: /elsewhere\n";  // what a flag or the environment names counts
  CHECK(watched.node.Run({"health", "--config", file}).exit_code == 0);
  CHECK(watched.node.Run({"health", "--resync", "never"}).exit_code == 2);
}

TEST_CASE("a port that is taken costs the metrics and nothing else", "[node][grpc]") {
  const Watched first;
  const std::string taken = "127.0.0.1:" + std::to_string(PortOf(first.daemon));
  const Watched second({"--metrics-listen", taken});
  const auto kubelet = second.node.StartKubelet();
  INFO(second.daemon.Log());
  CHECK(kubelet->WaitHealthy(kH100, 8, kLong));
  CHECK(second.daemon.CountLines({"no metrics", taken, "choose another metrics.listen"}) == 1);
  CHECK(second.Status().exit_code == 0);
}

TEST_CASE("status of a node without a daemon names the socket and fails", "[node]") {
  const Node node("hgx-8gpu");
  const ProgramResult result = node.Run({"status"});
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.err, Catch::Contains(node.state_dir() + "/status.sock"));
  CHECK_THAT(result.err, Catch::Contains("does `vfio-agent run` run here"));
  CHECK(result.out.empty());
}

TEST_CASE("the status socket is for root alone, and turns others away whatever its mode",
          "[node][grpc]") {
  if (::geteuid() != 0) {
    WARN("skipped: only root can be somebody else");
    return;
  }
  const Watched watched{std::vector<std::string>()};
  REQUIRE(Eventually([&] { return watched.Status().exit_code == 0; }, kLong));
  struct stat info = {};
  REQUIRE(::stat(watched.socket().c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0600);
  for (const std::string& dir : {watched.node.dir().path(), watched.node.state_dir()}) {
    std::filesystem::permissions(dir, std::filesystem::perms(0755));
  }
  REQUIRE(::chmod(watched.socket().c_str(), 0666) == 0);
  absl::Status refused;
  // To the kernel, who one is, is a matter of the thread.
  std::thread([&] {
    if (::syscall(SYS_setresuid, -1, 65534, -1) != 0) return;
    refused = FetchStatus(watched.socket(), kLong).status();
  }).join();
  INFO(refused);
  CHECK(absl::IsUnavailable(refused));
  CHECK_THAT(std::string(refused.message()), Catch::Contains(watched.socket()));
  CHECK_FALSE(watched.daemon.WaitForLine({"user 65534 was turned away"}, kLong).empty());
  CHECK(FetchStatus(watched.socket(), kLong).ok());
}

TEST_CASE("a health checker that asks for an unknown service is told that there is none",
          "[node][grpc]") {
  const Watched watched{std::vector<std::string>()};
  REQUIRE(Eventually([&] { return watched.Status().exit_code == 0; }, kLong));
  grpc::StatusCode code = grpc::StatusCode::UNKNOWN;
  CHECK(AskHealth(watched.socket(), "vfio_agent.status.v1.Status", code) ==
        health::HealthCheckResponse::SERVING);
  AskHealth(watched.socket(), "v1beta1.DevicePlugin", code);
  CHECK(code == grpc::StatusCode::NOT_FOUND);
}

}  // namespace
}  // namespace vfio_agent
