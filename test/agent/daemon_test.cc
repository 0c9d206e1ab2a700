// The daemon on simulated nodes, with the fake kubelet on the other side.
#include <csignal>

#include "test/agent/node.h"

namespace vfio_agent {
namespace {

constexpr absl::Duration kLong = absl::Seconds(30);

TEST_CASE("the whole way: bind eight GPUs, register, list, allocate", "[node][grpc]") {
  const auto generation = GENERATE(FakeKubelet::Generation::k136, FakeKubelet::Generation::k137);
  const Node node("hgx-8gpu");
  const auto kubelet = node.StartKubelet(generation);
  const Daemon daemon(node.DaemonArguments());
  INFO(daemon.Log());
  REQUIRE(kubelet->WaitHealthy(kH100, 8, kLong));
  const auto answer = kubelet->Allocate(kH100, {"0000:d1:00.0", "0000:1b:00.0"});
  REQUIRE(answer.ok());
  CHECK(answer->envs().at("PCI_RESOURCE_NVIDIA_COM_GH100_H100_SXM5_80GB") ==
        "0000:1b:00.0,0000:d1:00.0");
  REQUIRE(answer->devices_size() == 3);
  CHECK(answer->devices(0).host_path() == "/dev/vfio/vfio");
  CHECK(kubelet->PreStart(kH100, {"0000:1b:00.0"}).ok());
  CHECK_FALSE(kubelet->Allocate(kH100, {"0000:99:00.0"}).ok());
  CHECK(daemon.CountLines({"event=bind_started"}) == 8);
  CHECK(daemon.CountLines({"event=bind_done"}) == 8);
}

TEST_CASE("SIGTERM ends the daemon within two seconds and leaves devices bound", "[node][grpc]") {
  const Node node("hgx-8gpu");
  const auto kubelet = node.StartKubelet();
  Daemon daemon(node.DaemonArguments());
  REQUIRE(kubelet->WaitHealthy(kH100, 8, kLong));
  const std::string writes = node.Writes();
  daemon.Signal(SIGTERM);
  CHECK(daemon.WaitForEnd(absl::Seconds(5)) == 0);
  CHECK(node.DriverOf("0000:1b:00.0") == "vfio-pci");
  CHECK(node.Writes() == writes);
}

TEST_CASE("KUBE-02: a restart finds its devices bound and writes nothing", "[node][grpc]") {
  const Node node("cases/KUBE-02");
  const auto kubelet = node.StartKubelet();
  const Daemon daemon(node.DaemonArguments());
  REQUIRE(kubelet->WaitHealthy(kH100, 8, kLong));
  CHECK(node.Writes().empty());
}

TEST_CASE("onExit: release gives devices back at the end", "[node][grpc]") {
  const Node node("cases/VIA-05");
  const auto kubelet = node.StartKubelet();
  Daemon daemon(node.DaemonArguments({"--on-exit", "release"}));
  REQUIRE(Eventually([&] { return node.DriverOf("0000:01:00.1") == "vfio-pci"; }, kLong));
  REQUIRE_FALSE(daemon.WaitForLine({"event=group_ready"}, kLong).empty());
  daemon.Signal(SIGTERM);
  CHECK(daemon.WaitForEnd(kLong) == 0);
  CHECK(node.DriverOf("0000:01:00.0") == "nvidia");
  CHECK(node.DriverOf("0000:01:00.1") == "snd_hda_intel");
}

TEST_CASE("R19: a kubelet that comes late, and comes again, gets every unit", "[node][grpc]") {
  const Node node("hgx-8gpu");
  const Daemon daemon(node.DaemonArguments());
  REQUIRE_FALSE(daemon.WaitForLine({"event=group_ready"}, kLong).empty());
  const auto kubelet = node.StartKubelet();
  INFO(daemon.Log());
  REQUIRE(kubelet->WaitHealthy(kH100, 8, kLong));
  for (int i = 0; i < 3; ++i) {
    CAPTURE(i);
    kubelet->Stop();
    REQUIRE(kubelet->Start().ok());
    REQUIRE(kubelet->WaitHealthy(kH100, 8, kLong));
  }
}

TEST_CASE("a member that goes back to its host driver turns its unit unhealthy and is healed",
          "[node][grpc]") {
  const Node node("hgx-8gpu");
  const auto kubelet = node.StartKubelet();
  const Daemon daemon(node.DaemonArguments());
  REQUIRE(kubelet->WaitHealthy(kH100, 8, kLong));
  const int messages = kubelet->Resources().at(kH100).messages;
  node.Control("rebind 0000:1b:00.0 nvidia");
  INFO(daemon.Log());
  REQUIRE(kubelet->WaitFor(
      [&](const FakeResources& resources) { return resources.at(kH100).messages > messages; },
      kLong));
  REQUIRE(kubelet->WaitHealthy(kH100, 8, kLong));
  CHECK(node.DriverOf("0000:1b:00.0") == "vfio-pci");
}

TEST_CASE(
    "R28, T9, KUBE-04: a device that leaves the bus stays listed, unhealthy, until it is back",
    "[node][grpc]") {
  const Node node("hgx-8gpu");
  const auto kubelet = node.StartKubelet();
  const Daemon daemon(node.DaemonArguments());
  REQUIRE(kubelet->WaitHealthy(kH100, 8, kLong));
  node.Control("remove 0000:1b:00.0");
  REQUIRE(kubelet->WaitHealthy(kH100, 7, kLong));
  CHECK(kubelet->Resources().at(kH100).devices.size() == 8);
  CHECK_FALSE(kubelet->Allocate(kH100, {"0000:1b:00.0"}).ok());
  node.Control("add 0000:1b:00.0");
  INFO(daemon.Log());
  CHECK(kubelet->WaitHealthy(kH100, 8, kLong));
}

TEST_CASE("R58: pods and plugins_registry are below the kubelet's root, wherever plugins are",
          "[node][grpc]") {
  const Node node("hgx-8gpu");
  const auto kubelet = node.StartKubelet();
  const std::string unit = "0000:1b:00.0";
  kubelet->SetPod("team", "vm", "compute", kH100, {unit});
  const auto sockets_in = [](const std::string& dir) {
    std::error_code error;
    std::filesystem::directory_iterator entries(dir, error), end;
    return std::count_if(entries, end, [](const std::filesystem::directory_entry& entry) {
      return entry.path().filename().string().starts_with("vfio-");
    });
  };
  SECTION("a registry") {
    const std::string registry = node.kubelet_root() + "/plugins_registry";
    std::filesystem::create_directories(registry);
    const Daemon daemon(node.DaemonArguments({"--registration", "registry"}));
    INFO(daemon.Log());
    CHECK(Eventually([&] { return sockets_in(registry) == 1; }, kLong));
    CHECK(sockets_in(node.kubelet_dir()) == 0);
  }
  SECTION("the kubelet's socket, and the pods") {
    const Daemon daemon(node.DaemonArguments());
    INFO(daemon.Log());
    REQUIRE(kubelet->WaitHealthy(kH100, 8, kLong));
    CHECK(sockets_in(node.kubelet_dir()) == 1);
    CHECK_FALSE(std::filesystem::exists(node.kubelet_root() + "/device-plugins"));
    CHECK_FALSE(daemon.WaitForLine({"event=unit_held", unit, "team/vm"}, kLong).empty());
  }
}

TEST_CASE("SIGHUP reads the configuration anew, and a wrong one is refused while the old one stays",
          "[node][grpc]") {
  const Node node("cases/BIND-13");
  constexpr char kOne[] = "resources: [{select: [{address: \"0000:17:00.0\"}]}]\n";
  constexpr char kBoth[] = "resources: [{select: [{vendor: \"10de\"}]}]\n";
  const std::string config = node.dir().Write("config.yaml", kOne);
  const Daemon daemon(node.DaemonArguments({"--config", config}));
  INFO(daemon.Log());
  REQUIRE(Eventually([&] { return node.DriverOf("0000:17:00.0") == "vfio-pci"; }, kLong));
  CHECK(node.DriverOf("0000:65:00.0") == "nvidia");

  node.dir().Write("config.yaml", "resources: 5\n");
  daemon.Signal(SIGHUP);
  CHECK_FALSE(daemon.WaitForLine({"event=config_rejected", "want a list"}, kLong).empty());
  CHECK(node.DriverOf("0000:65:00.0") == "nvidia");

  node.dir().Write("config.yaml", kBoth);
  daemon.Signal(SIGHUP);
  CHECK(Eventually([&] { return node.DriverOf("0000:65:00.0") == "vfio-pci"; }, kLong));
}

TEST_CASE("SIGHUP does not move the journal of a daemon that is at work", "[node]") {
  const Node node("cases/VIA-05");
  const auto write = [&node](const std::string& state_dir, const std::string& selected) {
    return node.dir().Write("config.yaml", "stateDir: " + node.dir().path() + "/" + state_dir +
                                               "\nresources: [{select: [{vendor: \"" + selected +
                                               "\"}]}]\n");
  };
  const std::string config = write("first", "10de");
  Daemon daemon({"--root", node.root(), "--config", config, "--device-plugin-dir",
                 node.kubelet_dir(), "--resync", "200ms"});
  REQUIRE_FALSE(daemon.WaitForLine({"event=group_ready"}, kLong).empty());
  write("second", "1234");
  daemon.Signal(SIGHUP);
  REQUIRE_FALSE(daemon.WaitForLine({"event=group_left"}, kLong).empty());
  write("second", "10de");
  daemon.Signal(SIGHUP);
  REQUIRE(Eventually([&] { return daemon.CountLines({"event=group_ready"}) == 2; }, kLong));
  daemon.Signal(SIGTERM);
  CHECK(daemon.WaitForEnd(kLong) == 0);
  INFO(daemon.Log());
  CHECK(daemon.CountLines({"event=adopted"}) == 0);  // it knows what is its own
}

TEST_CASE("nothing is said twice while nothing changes", "[node][grpc]") {
  const Node node("cases/VIA-17");
  Daemon daemon(node.DaemonArguments({"--resync", "20ms", "--log-level", "debug"}));
  REQUIRE_FALSE(daemon.WaitForLine({"event=group_refused"}, kLong).empty());
  daemon.Signal(SIGHUP);  // one more picture for certain
  REQUIRE_FALSE(daemon.WaitForLine({"event=config_reloaded"}, kLong).empty());
  daemon.Signal(SIGTERM);
  CHECK(daemon.WaitForEnd(kLong) == 0);
  CHECK(daemon.CountLines({"event=group_refused"}) == 1);
  CHECK(daemon.CountLines({"event=iommu_on"}) == 1);
}

TEST_CASE("the log as JSON is one object a line", "[node]") {
  const Node node("cases/VIA-17");
  Daemon daemon(node.DaemonArguments({"--log-format", "json"}));
  const std::string line = daemon.WaitForLine({"group_refused"}, kLong);
  REQUIRE_FALSE(line.empty());
  const auto object = nlohmann::json::parse(line);
  CHECK(object.at("event") == "group_refused");
  CHECK(object.at("level") == "warning");
  CHECK(object.at("code") == "foreign-member");
}

}  // namespace
}  // namespace vfio_agent
