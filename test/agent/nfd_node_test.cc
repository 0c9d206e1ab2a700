// NFD's feature file of the daemon on simulated nodes.
#include <csignal>
#include <fstream>
#include <sstream>

#include "test/agent/node.h"

namespace vfio_agent {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kLong = absl::Seconds(30);
constexpr char kHealthy[] = "vfio-agent/GH100_H100_SXM5_80GB.healthy=";

std::string DirOf(const Node& node) { return node.dir().path() + "/features.d"; }
std::string FileOf(const Node& node) { return DirOf(node) + "/vfio-agent"; }

std::string TextOf(const Node& node) {
  std::ifstream file(FileOf(node));
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

bool WaitForText(const Node& node, const std::string& part) {
  return Eventually([&] { return TextOf(node).find(part) != std::string::npos; }, kLong);
}

TEST_CASE("R59: the node's labels follow what the kubelet is offered", "[node][grpc]") {
  const Node node("hgx-8gpu");
  const auto kubelet = node.StartKubelet();
  // So long without a picture that nothing asks for: what is put off for NFD's sake asks for one.
  const Daemon daemon(node.DaemonArguments({"--nfd-dir", DirOf(node), "--resync", "300s"}));
  INFO(daemon.Log());
  REQUIRE(WaitForText(node, kHealthy + std::string("8\n")));
  CHECK_THAT(TextOf(node), Catch::StartsWith("# +expiry-time=20") &&
                               Catch::Contains("vfio-agent/passthrough.ready=true\n") &&
                               Catch::Contains("vfio-agent/iommu=intel\n") &&
                               Catch::Contains("vfio-agent/GH100_H100_SXM5_80GB.units=8\n"));
  node.Control("remove 0000:1b:00.0");
  daemon.Signal(SIGHUP);  // a simulated node sends no uevents
  CHECK(WaitForText(node, kHealthy + std::string("7\n")));
  CHECK(daemon.CountLines({"event=nfd_failed"}) == 0);
}

TEST_CASE("R59: labels stay over a restart, and go where devices are released", "[node][grpc]") {
  const Node node("hgx-8gpu");
  const auto kubelet = node.StartKubelet();
  const std::string on_exit = GENERATE("keep", "release");
  CAPTURE(on_exit);
  Daemon daemon(node.DaemonArguments({"--nfd-dir", DirOf(node), "--on-exit", on_exit}));
  REQUIRE(WaitForText(node, kHealthy + std::string("8\n")));
  daemon.Signal(SIGTERM);
  CHECK(daemon.WaitForEnd(kLong) == 0);
  CHECK(fs::exists(FileOf(node)) == (on_exit == "keep"));
}

TEST_CASE("R59: without a directory to write to, units are served and the log says so once",
          "[node][grpc]") {
  const Node node("hgx-8gpu");
  const auto kubelet = node.StartKubelet();
  const std::string blocked = node.dir().Write("file", "kept") + "/features.d";
  Daemon daemon(node.DaemonArguments({"--nfd-dir", blocked, "--resync", "20ms"}));
  REQUIRE(kubelet->WaitHealthy(kH100, 8, kLong));
  daemon.Signal(SIGHUP);  // one more picture for certain
  REQUIRE_FALSE(daemon.WaitForLine({"event=config_reloaded"}, kLong).empty());
  daemon.Signal(SIGTERM);
  CHECK(daemon.WaitForEnd(kLong) == 0);
  INFO(daemon.Log());
  CHECK(daemon.CountLines({"event=nfd_failed", blocked, "remedy="}) == 1);
}

}  // namespace
}  // namespace vfio_agent
