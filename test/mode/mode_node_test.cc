// A node whose mode is changed while the daemon is at work.
#include <filesystem>

#include "absl/strings/str_split.h"
#include "test/mode/mode_nodes.h"

namespace vfio_agent {
namespace {

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

TEST_CASE("vm-passthrough, container and back: withheld, given back, bound again", "[mode]") {
  ModeNode node;
  node.Start(ModeNode::kPassthrough);
  REQUIRE(node.Healthy(2));
  node.Switch(ModeNode::kContainer);
  REQUIRE(node.AllHome());
  REQUIRE(node.Says({"event=mode_ready", "mode=container"}));
  const std::string log = node.daemon().Log();
  INFO(log);
  const int began =
      LineOf(log, {"event=mode_switching", "mode=container", "from=vm-passthrough", "is told"});
  const int withheld = LineOf(log, {"event=unit_unhealthy", "mode: switching to container"});
  const int released = LineOf(log, {"event=release_started"});
  CHECK(began >= 0);
  CHECK(withheld >= 0);
  CHECK(released > withheld);
  CHECK(LineOf(log, {"event=mode_ready", "mode=container"}) > released);
  CHECK(Eventually([&] { return node.ModeStatus()["state"] == "ready"; }, ModeNode::kLong));
  CHECK(node.ModeStatus()["mode"] == "container");
  CHECK(node.kubelet().Resources().at(kH100).Healthy() == 0);
  node.faults().CheckHostUntouched();

  node.Switch(ModeNode::kPassthrough);
  REQUIRE(node.Healthy(2));
  CHECK(node.AllTaken());
  CHECK(node.Says({"event=mode_ready", "mode=vm-passthrough"}));
}

TEST_CASE("what a pod has is waited for, its siblings are withheld, and nothing is written",
          "[mode]") {
  ModeNode node;
  node.Start(ModeNode::kPassthrough);
  REQUIRE(node.Healthy(2));
  const std::string who = GENERATE("a pod", "a process", "pods that the kubelet does not tell");
  CAPTURE(who);
  if (who == "a pod") node.SetPod(1);
  if (who == "a process") node.node().Control("hold 1 4242 qemu-kvm");
  if (who == "pods that the kubelet does not tell") node.kubelet().SilencePodResources(true);
  const std::string writes = node.node().Writes();
  node.Switch(ModeNode::kContainer);
  REQUIRE(node.Says({"event=mode_switching", "mode=container", "why=\"waits for "}));
  CHECK(node.Healthy(0));
  CHECK_FALSE(node.kubelet().Allocate(kH100, {FaultNode::AddressOf(2, 0)}).ok());
  CHECK(node.kubelet().PreStart(kH100, {FaultNode::AddressOf(1, 0)}).ok() == (who == "a pod"));
  CHECK(node.node().Writes() == writes);
  const std::string waits = "mode: vm-passthrough -> container (switching): waits for";
  CHECK(Eventually([&] { return node.node().Run({"status"}).out.find(waits) != std::string::npos; },
                   ModeNode::kLong));
  SECTION("until they are gone") {
    if (who == "a pod") CHECK(node.kubelet().RemovePod("team", "vm"));
    if (who == "a process") node.node().Control("free 1");
    node.kubelet().SilencePodResources(false);
    CHECK(node.AllHome());
  }
  SECTION("and going back gives everything free again, without a write") {
    node.Switch(ModeNode::kPassthrough);
    REQUIRE(node.Says({"event=mode_ready", "mode=vm-passthrough"}));
    CHECK(node.node().Writes() == writes);
    CHECK(node.kubelet().WaitFor(
        [](const FakeResources& resources) { return resources.at(kH100).Healthy() >= 1; },
        ModeNode::kLong));
  }
}

TEST_CASE("what mode is in force cannot be kept: nothing is begun until it can", "[mode]") {
  ModeNode node;
  const std::string kept = node.node().dir().path() + "/state/mode.json";
  REQUIRE(std::filesystem::create_directories(kept));
  node.Start(ModeNode::kPassthrough);
  REQUIRE(node.Says({"event=note", "mode.json: "}));
  node.Switch(ModeNode::kPassthrough);
  REQUIRE(node.Says({"event=config_reloaded"}));
  CHECK(node.faults().WritesOf(1).empty());
  CHECK(std::filesystem::remove(kept));
  CHECK(node.AllTaken());
}

TEST_CASE("a release that does not return blocks the mode, which is ready when it has", "[mode]") {
  ModeNode node;
  node.Start(ModeNode::kPassthrough, {"--unbind-timeout", "300ms"});
  REQUIRE(node.Healthy(2));
  node.faults().Block({.function = 0, .op = "unbind"}, 1, true);
  node.Switch(ModeNode::kContainer);
  REQUIRE(node.Says(
      {"event=mode_blocked", "mode=container", "group 1: the kernel has not returned", "/unbind"}));
  CHECK(Eventually([&] { return node.faults().IsHome(2); }, ModeNode::kLong));
  CHECK(Eventually([&] { return node.ModeStatus()["state"] == "blocked"; }, ModeNode::kLong));
  node.node().Control("clear-faults");
  node.faults().Unblock(1);
  CHECK(node.AllHome());
  CHECK(node.Says({"event=mode_ready", "mode=container"}));
}

TEST_CASE("a release that fails is told with the mode, tried again, and then it is ready",
          "[mode]") {
  ModeNode node;
  node.Start(ModeNode::kPassthrough);
  REQUIRE(node.Healthy(2));
  node.faults().Inject({.function = 0, .op = "unbind", .fault = "EIO"}, 1);
  node.Switch(ModeNode::kContainer);
  REQUIRE(node.Says({"event=mode_blocked", "the last release of group 1 failed"}));
  CHECK(node.AllHome());
  CHECK(node.Says({"event=mode_ready", "mode=container"}));
}

TEST_CASE("CUDA: cards that a process uses are not taken, and the mode waits for its end",
          "[mode]") {
  const Node node("cases/BIND-01");
  const auto kubelet = node.StartKubelet();
  const std::string config = node.dir().Write("config.yaml", ModeNode::kContainer);
  const Daemon daemon(node.DaemonArguments({"--config", config}));
  REQUIRE_FALSE(daemon.WaitForLine({"event=iommu_on"}, ModeNode::kLong).empty());
  node.dir().Write("config.yaml", ModeNode::kPassthrough);
  daemon.Signal(SIGHUP);
  const std::string waits = daemon.WaitForLine(
      {"event=mode_switching", "mode=vm-passthrough", "waits for the end of a use", "4242"},
      ModeNode::kLong);
  INFO(daemon.Log());
  CHECK_FALSE(waits.empty());
  CHECK(node.Writes().empty());
  CHECK(node.DriverOf("0000:8a:00.0") == "nvidia");
}

TEST_CASE("a daemon that starts in container gives back what an earlier one took, and no more",
          "[mode]") {
  ModeNode node(3);
  REQUIRE(node.node().Run({"bind", "group:1", "group:2"}).exit_code == 0);
  for (const int function : {0, 1}) {
    node.node().Control("rebind " + FaultNode::AddressOf(3, function) + " vfio-pci");
  }
  node.SetPod(2);
  node.Start(ModeNode::kContainer);
  REQUIRE(Eventually([&] { return node.faults().IsHome(1); }, ModeNode::kLong));
  REQUIRE(node.Says({"event=mode_switching", "mode=container", "waits for", "team/vm"}));
  CHECK(node.faults().IsTaken(2));
  REQUIRE(node.kubelet().RemovePod("team", "vm"));
  CHECK(Eventually([&] { return node.faults().IsHome(2); }, ModeNode::kLong));
  CHECK(node.Says({"event=mode_ready", "mode=container"}));
  CHECK(node.node().DriverOf(FaultNode::AddressOf(3, 0)) == "vfio-pci");  // not this agent's
}

}  // namespace
}  // namespace vfio_agent
