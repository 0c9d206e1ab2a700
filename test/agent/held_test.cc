// A unit that somebody has: whatever the agent, its operator or a third party does, not one write
// goes to its group.
#include <csignal>

#include "test/agent/fault_node.h"

namespace vfio_agent {
namespace {

constexpr absl::Duration kLong = absl::Seconds(60);
constexpr int kHeld = 1;
constexpr int kFree = 2;
constexpr char kSilence[] = "does not answer";

// Two units, both bound by this agent; somebody has the first.
class HeldNode {
 public:
  enum class By { kProcess, kPod, kPerhapsAPod };
  explicit HeldNode(By by) : by_(by), node_(2) {
    REQUIRE(node_.node().Run({"bind"}).exit_code == 0);
    if (by == By::kProcess) node_.node().Control("hold 1 4242 qemu-kvm");
    if (by == By::kPod) {
      kubelet_->SetPod("lab", "vm-seven", "compute", kH100, {FaultNode::AddressOf(kHeld, 0)});
    }
    kubelet_->SilencePodResources(by == By::kPerhapsAPod);
    writes_ = node_.WritesOf(kHeld);
  }

  const FaultNode& faults() const { return node_; }
  const Node& node() const { return node_.node(); }
  FakeKubelet& kubelet() const { return *kubelet_; }
  // How a refusal names who has it.
  const char* holder() const {
    return by_ == By::kProcess ? "4242" : by_ == By::kPod ? "lab/vm-seven" : kSilence;
  }
  // With a silent kubelet any unit may be somebody's.
  bool OnlyFirstHeld() const { return by_ != By::kPerhapsAPod; }
  void CheckNoWrite() const { CHECK(node_.WritesOf(kHeld) == writes_); }
  void CheckListed() const {
    CHECK(kubelet_->Resources().at(kH100).devices.size() == 2);
    CHECK_FALSE(kubelet_->Resources().at(kH100).stopped);
  }
  void LetGo() const {
    if (by_ == By::kProcess) node().Control("free 1");
    if (by_ == By::kPod) CHECK(kubelet_->RemovePod("lab", "vm-seven"));
    kubelet_->SilencePodResources(false);
  }

 private:
  By by_;
  FaultNode node_;
  std::unique_ptr<FakeKubelet> kubelet_ = node_.node().StartKubelet();
  std::vector<std::string> writes_;
};

HeldNode::By AnyHolder() {
  return GENERATE(HeldNode::By::kProcess, HeldNode::By::kPod, HeldNode::By::kPerhapsAPod);
}

TEST_CASE("start, reload, end, upgrade and crash of the agent make no write to a held group",
          "[matrix]") {
  const HeldNode held(AnyHolder());
  CAPTURE(held.holder());
  {
    Daemon first(held.node().DaemonArguments());
    REQUIRE(held.kubelet().WaitHealthy(kH100, 2, kLong));
    first.Signal(SIGHUP);
    REQUIRE_FALSE(first.WaitForLine({"event=config_reloaded"}, kLong).empty());
    first.Signal(SIGTERM);
    CHECK(first.WaitForEnd(kLong) == 0);
  }
  {
    Daemon second(held.node().DaemonArguments());
    REQUIRE(held.kubelet().WaitHealthy(kH100, 2, kLong));
    KillWithChildren(second);
  }
  const Daemon third(held.node().DaemonArguments());
  CHECK(held.kubelet().WaitHealthy(kH100, 2, kLong));
  held.CheckListed();
  held.CheckNoWrite();
}

TEST_CASE("a held unit that the configuration selects no more stays listed, and no write is made",
          "[matrix]") {
  const HeldNode held(AnyHolder());
  const std::string config = held.node().dir().Write(
      "config.yaml", "resources: [{select: [{vendor: \"10de\", class: \"0302\"}]}]\n");
  const Daemon daemon(held.node().DaemonArguments({"--config", config}));
  REQUIRE(held.kubelet().WaitHealthy(kH100, 2, kLong));
  held.node().dir().Write("config.yaml", "resources: [{select: [{address: \"0000:02:00.0\"}]}]\n");
  daemon.Signal(SIGHUP);
  REQUIRE_FALSE(daemon.WaitForLine({"event=config_reloaded"}, kLong).empty());
  CHECK(held.kubelet().WaitHealthy(kH100, 1, kLong));
  held.CheckListed();
  held.CheckNoWrite();
}

TEST_CASE("release refuses what somebody has, names who it is, and gives back the rest",
          "[matrix]") {
  const HeldNode held(AnyHolder());
  CAPTURE(held.holder());
  const ProgramResult result =
      held.node().Run({"release", "--device-plugin-dir", held.node().kubelet_dir(),
                       "--kubelet-root-dir", held.node().kubelet_root()});
  CHECK(result.exit_code == 3);
  CHECK_THAT(result.out, Catch::Contains("group 1: refused") && Catch::Contains("held") &&
                             Catch::Contains(held.holder()));
  held.CheckNoWrite();
  CHECK(held.faults().IsTaken(kHeld));
  CHECK(held.faults().IsHome(kFree) == held.OnlyFirstHeld());
}

TEST_CASE("onExit: release at SIGTERM leaves a held group alone and gives back the rest",
          "[matrix]") {
  const HeldNode held(AnyHolder());
  CAPTURE(held.holder());
  Daemon daemon(held.node().DaemonArguments({"--on-exit", "release"}));
  REQUIRE(held.kubelet().WaitHealthy(kH100, 2, kLong));
  daemon.Signal(SIGTERM);
  CHECK(daemon.WaitForEnd(kLong) == 3);
  CHECK_THAT(daemon.Log(), Catch::Contains(held.holder()));
  held.CheckNoWrite();
  CHECK(held.faults().IsTaken(kHeld));
  CHECK(held.faults().IsHome(kFree) == held.OnlyFirstHeld());
}

TEST_CASE("a companion that drifts is healed when the unit is free again, and not before",
          "[matrix]") {
  const HeldNode held(AnyHolder());
  CAPTURE(held.holder());
  auto daemon = std::make_unique<Daemon>(held.node().DaemonArguments());
  REQUIRE(held.kubelet().WaitHealthy(kH100, 2, kLong));
  const std::string companion = FaultNode::AddressOf(kHeld, 1);
  held.node().Control("rebind " + companion + " snd_hda_intel");
  const std::vector<std::string> refused = {"event=group_refused", "group=1 ", "code=held",
                                            held.holder()};
  CHECK_FALSE(daemon->WaitForLine(refused, kLong).empty());
  CHECK(held.kubelet().WaitHealthy(kH100, 1, kLong));
  held.CheckListed();
  SECTION("the agent that saw it") {}
  SECTION("one that starts after it") {
    daemon->Signal(SIGTERM);
    REQUIRE(daemon->WaitForEnd(kLong) == 0);
    daemon = std::make_unique<Daemon>(held.node().DaemonArguments());
  }
  SECTION("one that starts after a crash") {
    KillWithChildren(*daemon);
    daemon = std::make_unique<Daemon>(held.node().DaemonArguments());
  }
  CHECK_FALSE(daemon->WaitForLine(refused, kLong).empty());
  CHECK(held.kubelet().WaitHealthy(kH100, 1, kLong));
  const ProgramResult bind =
      held.node().Run({"bind", "--device-plugin-dir", held.node().kubelet_dir(),
                       "--kubelet-root-dir", held.node().kubelet_root()});
  CHECK(bind.exit_code == 3);
  CHECK_THAT(bind.out, Catch::Contains("held") && Catch::Contains(held.holder()));
  held.CheckNoWrite();
  CHECK(held.node().DriverOf(companion) == "snd_hda_intel");
  held.LetGo();
  CHECK(held.kubelet().WaitHealthy(kH100, 2, kLong));
  CHECK(held.node().DriverOf(companion) == "vfio-pci");
}

}  // namespace
}  // namespace vfio_agent
