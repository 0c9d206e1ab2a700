// Who has what where the kubelet has not told of it, or not yet.
#include <sstream>

#include "test/agent/boards.h"

namespace vfio_agent {
namespace {

std::string TextOf(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST_CASE(
    "R51: an agent that starts with its kubelet holds what stands in the kubelet's checkpoint",
    "[node][grpc]") {
  Boards boards;
  boards.Checkpoint(kA);
  boards.Start();
  REQUIRE(boards.Sees("+-+"));
  CHECK_FALSE(boards.daemon->WaitForLine({"event=unit_held", kA, "uid u-1"}, kLong).empty());
  CHECK_FALSE(boards.Allocate({kB}).ok());
  const ProgramResult released =
      boards.node.Run({"release", kA, "--device-plugin-dir", boards.node.kubelet_dir(),
                       "--kubelet-root-dir", boards.node.kubelet_root()});
  CHECK(released.exit_code == 3);
}

TEST_CASE("R33: what may be a pod's still splits no group, whatever else is known",
          "[node][grpc]") {
  Boards boards;
  SECTION("an old entry of the checkpoint beside a pod that has the sibling") {
    boards.Checkpoint(kA);
    boards.SetPod({kB});
    boards.Start();
    REQUIRE(boards.Sees("-++"));
  }
  SECTION("old answers of both, and a kubelet that lists no pods") {
    boards.Start();
    REQUIRE(boards.Sees("+++"));
    for (const char* unit : {kA, kB}) {
      REQUIRE(boards.Allocate({unit}).ok());
      boards.SetPod({unit});
      REQUIRE_FALSE(boards.daemon->WaitForLine({"event=unit_held", unit}, kLong).empty());
      if (std::string_view(unit) == kB) break;
      REQUIRE(boards.kubelet->RemovePod("team", "vm"));
      REQUIRE(boards.Sees("+++"));
    }
    boards.daemon->Signal(SIGTERM);
    REQUIRE(boards.daemon->WaitForEnd(kLong) == 0);
    boards.kubelet->RefusePodResources("not now");
    boards.Start();
    REQUIRE(boards.Sees("--+"));
  }
  CHECK_FALSE(boards.Allocate({kA}).ok());
}

TEST_CASE("R25, R28: a unit is not offered by another name while the kubelet does not list pods",
          "[node][grpc]") {
  Boards boards;
  boards.Start();
  REQUIRE(boards.Sees("+++"));
  REQUIRE(boards.Allocate({kLone}).ok());
  boards.SetPod({kLone});
  REQUIRE_FALSE(boards.daemon->WaitForLine({"event=unit_held", kLone}, kLong).empty());
  boards.daemon->Signal(SIGTERM);
  REQUIRE(boards.daemon->WaitForEnd(kLong) == 0);
  boards.kubelet->RefusePodResources("not now");
  boards.Start(
      {"--config", boards.node.dir().Write("config.yaml", "aliases: {\"10de:2330\": NEW}\n")});
  CHECK(boards.Sees("..-"));
  CHECK(boards.Sees("--.", "nvidia.com/NEW"));
  CHECK_FALSE(boards.kubelet->Allocate("nvidia.com/NEW", {kLone}).ok());
  boards.kubelet->RefusePodResources("");
  REQUIRE(boards.kubelet->RemovePod("team", "vm"));
  CHECK(boards.Sees("+++", "nvidia.com/NEW"));
}

TEST_CASE("onExit: release keeps what a pod had before its kubelet restarted", "[node][grpc]") {
  constexpr char kGpu[] = "0000:01:00.0";
  const Node node("cases/VIA-05");
  const auto kubelet = node.StartKubelet();
  Daemon daemon(node.DaemonArguments({"--on-exit", "release"}));
  REQUIRE(
      kubelet->WaitFor([](const FakeResources& resources) { return !resources.empty(); }, kLong));
  kubelet->SetPod("team", "vm", "compute", kubelet->Resources().begin()->first, {kGpu});
  REQUIRE_FALSE(daemon.WaitForLine({"event=unit_held", kGpu}, kLong).empty());
  kubelet->Stop();
  kubelet->HidePods(true);
  REQUIRE(kubelet->Start().ok());
  REQUIRE_FALSE(daemon.WaitForLine({"event=kubelet_restarted"}, kLong).empty());
  daemon.Signal(SIGTERM);
  REQUIRE(daemon.WaitForEnd(kLong) >= 0);
  INFO(daemon.Log());
  CHECK(node.DriverOf(kGpu) == "vfio-pci");
}

TEST_CASE("R27: what an agent gave and did not come to write down is learnt by the next one",
          "[node][grpc]") {
  Boards boards;
  boards.SetPod({kLone});
  boards.Start();
  REQUIRE(boards.Sees("+++"));
  const std::string answers = boards.node.state_dir() + "/answers.json";
  REQUIRE(Eventually([&] { return TextOf(answers).find(kLone) != std::string::npos; }, kLong));
  CHECK(TextOf(answers).find(kA) == std::string::npos);
}

}  // namespace
}  // namespace vfio_agent
