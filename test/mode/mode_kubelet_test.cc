// A kubelet that goes away and comes back while a mode is being left.
#include "test/mode/mode_nodes.h"

namespace vfio_agent {
namespace {

// As one comes up: it lists pods, none at first, and only then takes plugins.
void Restart(const ModeNode& node) {
  FakeKubelet& kubelet = node.kubelet();
  kubelet.Stop(true);
  kubelet.SilencePodResources(false);
  kubelet.HidePods(true);
  REQUIRE(kubelet.StartPods().ok());
  const int lists = kubelet.PodLists();
  REQUIRE(Eventually([&] { return kubelet.PodLists() >= lists + 2; }, ModeNode::kLong));
  REQUIRE(kubelet.Start().ok());
  REQUIRE(kubelet.WaitFor(
      [](const FakeResources& resources) {
        return resources.contains(kH100) && resources.at(kH100).devices.size() == 2;
      },
      ModeNode::kLong));
}

// Nothing was given, or begun, by somebody who believed the new kubelet too early.
void CheckStillWaits(const ModeNode& node, const std::string& writes) {
  FakeKubelet& kubelet = node.kubelet();
  const int lists = kubelet.PodLists();
  REQUIRE(Eventually([&] { return kubelet.PodLists() >= lists + 2; }, ModeNode::kLong));
  INFO(node.daemon().Log());
  CHECK(kubelet.Resources().at(kH100).healthy_lists == 0);
  CHECK_FALSE(kubelet.Allocate(kH100, {FaultNode::AddressOf(2, 0)}).ok());
  CHECK(node.node().Writes() == writes);
  CHECK(node.ModeStatus()["mode"] == "vm-passthrough");
  CHECK(node.ModeStatus()["state"] == "switching");
  CHECK_THAT(node.ModeStatus()["reason"].get<std::string>(), Catch::Contains("team/vm"));
  CHECK(node.daemon().CountLines({"event=unit_healthy"}) == 0);
}

struct Leaving {
  Leaving() {
    node.Start(ModeNode::kPassthrough);
    REQUIRE(node.Healthy(2));
    node.SetPod(1);
    REQUIRE(node.Says({"event=unit_held", "team/vm"}));
    writes = node.node().Writes();
  }
  ModeNode node;
  std::string writes;
};

TEST_CASE("a kubelet that restarts before it was seen to count nothing any more is waited for",
          "[mode]") {
  Leaving leaving;
  const ModeNode& node = leaving.node;
  node.kubelet().SilencePodResources(true);
  node.Switch(ModeNode::kContainer);
  REQUIRE(node.Says({"event=mode_switching", "mode=container", "pods that are not known"}));
  Restart(node);
  CheckStillWaits(node, leaving.writes);
  // And whoever thinks better of it has everything again.
  node.kubelet().HidePods(false);
  node.Switch(ModeNode::kPassthrough);
  CHECK(node.Healthy(2));
  CHECK(node.node().Writes() == leaving.writes);
}

TEST_CASE("a kubelet that restarts while a pod is waited for, and lists none yet, frees nothing",
          "[mode]") {
  Leaving leaving;
  const ModeNode& node = leaving.node;
  node.Switch(ModeNode::kContainer);
  REQUIRE(node.Says({"event=mode_switching", "mode=container", "waits for pod team/vm"}));
  Restart(node);
  CheckStillWaits(node, leaving.writes);
  REQUIRE(node.kubelet().RemovePod("team", "vm"));
  CHECK(node.AllHome());
  CHECK(node.Says({"event=mode_ready", "mode=container"}));
}

}  // namespace
}  // namespace vfio_agent
