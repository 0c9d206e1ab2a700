// kill -9 in each part of a switch, and then a successor.
#include "test/mode/mode_nodes.h"

namespace vfio_agent {
namespace {

// "mode: X" of what the successor is told.
std::string AnyMode() { return GENERATE(ModeNode::kContainer, ModeNode::kPassthrough); }

void CheckArrived(const ModeNode& node, const std::string& mode) {
  CAPTURE(mode);
  INFO(node.daemon().Log());
  if (mode == ModeNode::kContainer) {
    CHECK(node.AllHome());
    CHECK(node.faults().ReadRecords().empty());
  } else {
    CHECK(node.AllTaken());
    CHECK(node.Healthy(static_cast<size_t>(node.faults().groups())));
  }
  node.faults().CheckHostUntouched();
}

TEST_CASE("kill -9 while a pod is waited for: the successor waits too, or serves again", "[mode]") {
  ModeNode node;
  const std::string mode = AnyMode();
  node.Start(ModeNode::kPassthrough);
  REQUIRE(node.Healthy(2));
  node.SetPod(1);
  node.Switch(ModeNode::kContainer);
  REQUIRE(node.Says({"event=mode_switching", "waits for pod team/vm"}));
  const std::vector<std::string> writes = node.faults().WritesOf(1);
  node.Kill();
  node.Start(mode);
  if (mode == ModeNode::kContainer) {
    REQUIRE(node.Says({"event=mode_switching", "waits for", "team/vm"}));
    CHECK(node.faults().WritesOf(1) == writes);
    REQUIRE(node.kubelet().RemovePod("team", "vm"));
  }
  CheckArrived(node, mode);
}

TEST_CASE("kill -9 while devices are given back: the successor completes it, or takes them again",
          "[mode]") {
  const std::string op = GENERATE("override", "unbind", "drivers_probe");
  const bool done = GENERATE(false, true);  // what cannot be killed is carried out all the same
  const std::string mode = AnyMode();
  CAPTURE(op, done);
  ModeNode node;
  node.Start(ModeNode::kPassthrough);
  REQUIRE(node.Healthy(2));
  node.faults().Block({.function = 0, .op = op}, 1, done);
  node.Switch(ModeNode::kContainer);
  REQUIRE(Eventually([&] { return node.faults().Running() == 1; }, ModeNode::kLong));
  node.Kill();
  node.node().Control("clear-faults");
  node.faults().Unblock(1);
  node.Start(mode);
  CheckArrived(node, mode);
}

TEST_CASE("kill -9 while devices are bound: the successor binds them, or gives them back",
          "[mode]") {
  const std::string mode = AnyMode();
  ModeNode node;
  node.Start(ModeNode::kContainer);
  REQUIRE(node.Says({"event=iommu_on"}));
  node.faults().Block({.function = 1, .op = "unbind"}, 1, false);
  node.Switch(ModeNode::kPassthrough);
  REQUIRE(Eventually([&] { return node.faults().Running() == 1; }, ModeNode::kLong));
  node.Kill();
  node.node().Control("clear-faults");
  REQUIRE(Eventually([&] { return node.faults().Running() == 0; }, ModeNode::kLong));
  node.Start(mode);
  CheckArrived(node, mode);
}

}  // namespace
}  // namespace vfio_agent
