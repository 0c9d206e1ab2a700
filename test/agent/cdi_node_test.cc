// CDI specs of the daemon on simulated nodes.
#include <csignal>
#include <fstream>

#include "test/agent/node.h"

namespace vfio_agent {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kLong = absl::Seconds(30);
constexpr char kUnit[] = "0000:1b:00.0";

std::string DirOf(const Node& node) { return node.dir().path() + "/cdi"; }
std::string FileOf(const Node& node) {
  return DirOf(node) + "/vfio-agent-nvidia.com-GH100_H100_SXM5_80GB.json";
}

// The names under which a runtime finds the devices of a file: "<kind>=<device>", with their nodes.
std::map<std::string, std::vector<std::string>> DevicesIn(const std::string& path) {
  std::ifstream file(path);
  const auto spec = nlohmann::json::parse(file, nullptr, false);
  std::map<std::string, std::vector<std::string>> devices;
  if (spec.is_discarded()) return devices;
  for (const auto& device : spec.at("devices")) {
    const std::string name = device.at("name");
    auto& nodes = devices[spec.at("kind").get<std::string>() + "=" + name];
    for (const auto& node : device.at("containerEdits").at("deviceNodes")) {
      nodes.push_back(node.at("hostPath"));
    }
  }
  return devices;
}

std::string NameOf(const std::string& unit) { return std::string(kH100) + "=" + unit; }

TEST_CASE("R48: the name in the answer leads to the unit's own node, in a spec that is there first",
          "[node][grpc]") {
  const Node node("hgx-8gpu");
  const auto kubelet = node.StartKubelet();
  bool there = true;  // whenever the daemon registers
  kubelet->DuringRegister(
      [&](FakeKubelet::Stub&) { there = there && DevicesIn(FileOf(node)).size() > 0; });
  const Daemon daemon(node.DaemonArguments({"--cdi-dir", DirOf(node), "--cdi-names", "true"}));
  INFO(daemon.Log());
  REQUIRE(kubelet->WaitHealthy(kH100, 8, kLong));
  kubelet->DuringRegister(nullptr);
  CHECK(there);
  const auto answer = kubelet->Allocate(kH100, {kUnit});
  REQUIRE(answer.ok());
  REQUIRE(answer->cdi_devices_size() == 1);
  CHECK(answer->cdi_devices(0).name() == NameOf(kUnit));
  const auto devices = DevicesIn(FileOf(node));
  CHECK(devices.size() == 8);
  REQUIRE(devices.contains(answer->cdi_devices(0).name()));
  const std::vector<std::string> nodes = devices.at(answer->cdi_devices(0).name());
  REQUIRE(nodes.size() == 1);
  CHECK(nodes[0] == answer->devices(1).host_path());  // after /dev/vfio/vfio
}

TEST_CASE("R48: a device that leaves the bus leaves the spec, and comes back with it",
          "[node][grpc]") {
  const Node node("hgx-8gpu");
  const auto kubelet = node.StartKubelet();
  const Daemon daemon(node.DaemonArguments({"--cdi-dir", DirOf(node)}));
  INFO(daemon.Log());
  REQUIRE(kubelet->WaitHealthy(kH100, 8, kLong));
  node.Control(std::string("remove ") + kUnit);
  REQUIRE(kubelet->WaitHealthy(kH100, 7, kLong));
  CHECK(kubelet->Resources().at(kH100).devices.size() == 8);
  CHECK(DevicesIn(FileOf(node)).size() == 7);
  CHECK_FALSE(DevicesIn(FileOf(node)).contains(NameOf(kUnit)));
  node.Control(std::string("add ") + kUnit);
  REQUIRE(kubelet->WaitHealthy(kH100, 8, kLong));
  CHECK(DevicesIn(FileOf(node)).contains(NameOf(kUnit)));
}

TEST_CASE("R48: specs stay over a restart, and go where devices are released", "[node][grpc]") {
  const Node node("hgx-8gpu");
  const auto kubelet = node.StartKubelet();
  const std::string on_exit = GENERATE("keep", "release");
  CAPTURE(on_exit);
  Daemon daemon(node.DaemonArguments({"--cdi-dir", DirOf(node), "--on-exit", on_exit}));
  REQUIRE(kubelet->WaitHealthy(kH100, 8, kLong));
  CHECK(fs::exists(FileOf(node)));
  daemon.Signal(SIGTERM);
  CHECK(daemon.WaitForEnd(kLong) == 0);
  CHECK(fs::exists(FileOf(node)) == (on_exit == "keep"));
}

TEST_CASE("R48: without a directory to write to, units are served and the log says so once",
          "[node][grpc]") {
  const Node node("hgx-8gpu");
  const auto kubelet = node.StartKubelet();
  const std::string blocked = node.dir().Write("file", "kept") + "/cdi";
  Daemon daemon(node.DaemonArguments({"--cdi-dir", blocked, "--resync", "20ms"}));
  REQUIRE(kubelet->WaitHealthy(kH100, 8, kLong));
  CHECK(kubelet->Allocate(kH100, {kUnit}).ok());
  daemon.Signal(SIGHUP);  // one more picture for certain
  REQUIRE_FALSE(daemon.WaitForLine({"event=config_reloaded"}, kLong).empty());
  daemon.Signal(SIGTERM);
  CHECK(daemon.WaitForEnd(kLong) == 0);
  INFO(daemon.Log());
  CHECK(daemon.CountLines({"event=cdi_failed", blocked, "remedy="}) == 1);
}

}  // namespace
}  // namespace vfio_agent
