// Mediated devices on a simulated node, step by step as the agent goes: facts, plan, writes, offer,
// answer, KubeVirt's reading of it, release.
#include <filesystem>
#include <fstream>

#include "catch2/catch.hpp"
#include "deviceplugin/offer/allocate.h"
#include "deviceplugin/offer/verify.h"
#include "iommu/apply.h"
#include "iommu/mdev/mdev.h"
#include "sysfs/device/config_space.h"
#include "sysfs/status.h"
#include "sysfs/writer.h"
#include "test/deviceplugin/support.h"
#include "test/kubevirt/launcher.h"
#include "test/sim/mount.h"
#include "test/support/facts.h"

namespace vfio_agent {
namespace {

constexpr char kQ1[] = "nvidia.com/GRID_T4-1Q";
constexpr char kT4[] = "0000:3b:00.0";
constexpr char kForeign[] = "83b8f4f2-509f-382f-3c1e-e6bfe0fa1001";
constexpr char kMachine[] = R"(name: vgpu
host: {iommu_active: true, iommu: intel}
devices:
- address: "0000:3b:00.0"
  vendor: "10de"
  device: "1eb8"
  class: "030200"
  driver: nvidia
  iommu_group: 5
  numa_node: 1
  mdev_types:
    nvidia-222: {name: GRID T4-1Q, instances: 3}
    nvidia-225: {name: GRID T4-4Q, instances: 1}
)";

std::string Ours(int index) { return MdevUuid(At(kT4), "nvidia-222", index); }

struct VgpuNode {
  VgpuNode() {
    std::ofstream(dir.path() + "/machine.yaml") << kMachine;
    auto started = sim::SimMount::Start({"--machine", dir.path() + "/machine.yaml"});
    INFO(started.status());
    REQUIRE(started.ok());
    mount = *std::move(started);
    tree = std::make_unique<Tree>(*Tree::Open(mount->root()));
    policy.mdev = {{.parents = {{.vendor = uint16_t{0x10de}}}, .types = {{"GRID T4-1Q", 2}}}};
  }
  NodeFacts Facts() const {
    ConfigReader config(*tree);
    return *TakeNodeFacts(*tree, config, {});
  }
  Plan PlanNow() const { return MakePlan(Facts(), policy, {}, Asked()); }
  Outcome Carry(const std::vector<Action>& actions) const {
    TreeWriter writer(*tree);
    return Apply(actions, *tree, writer, absl::Seconds(20),
                 [](size_t) { return absl::OkStatus(); });
  }
  bool Has(const std::string& uuid) const { return FindMdev(Facts().mdev, uuid) != nullptr; }
  void CreateByHand() const { REQUIRE(mount->Write(MdevCreate(), kForeign) == 0); }
  static std::string MdevCreate() {
    return std::string("sys/bus/pci/devices/") + kT4 + "/mdev_supported_types/nvidia-222/create";
  }

  TempDir dir;
  std::unique_ptr<sim::SimMount> mount;
  std::unique_ptr<Tree> tree;
  Policy policy = DefaultPolicy();
};

TEST_CASE("VGPU: instances are made, offered by type, and given with only their own groups",
          "[mdev]") {
  const VgpuNode node;
  const Outcome made = node.Carry(GroupOf(node.PlanNow(), 5).actions);
  INFO(made.status);
  REQUIRE(made.done == 2);
  const NodeFacts facts = node.Facts();
  const Plan plan = node.PlanNow();
  CHECK(GroupOf(plan, 5).verdict == Verdict::kBound);
  CHECK(facts.devices[0].driver == "nvidia");
  const auto offers = MakeOffers(plan, facts, {}, {}, nullptr, absl::UnixEpoch());
  REQUIRE(offers.size() == 1);
  CHECK(offers[0].resource == kQ1);
  const IndexedOffer offer(offers[0]);
  const auto units = FindUnits(offer, {Ours(1), Ours(0)});
  INFO(units.status());
  REQUIRE(units.ok());
  for (const OfferedUnit* unit : *units) CHECK(VerifyUnit(*node.tree, *unit).ok());
  CHECK((*units)[0]->numa_node == 1);
  const auto answer = MakeAllocation(offers[0], *units);
  const kubevirt::Variables variables(answer.envs().begin(), answer.envs().end());
  CHECK(variables ==
        kubevirt::Variables{{"MDEV_PCI_RESOURCE_NVIDIA_COM_GRID_T4-1Q", Ours(0) + "," + Ours(1)}});
  const auto guest = kubevirt::StartMachine(kubevirt::MachineWith(kQ1, 2), variables);
  INFO(guest.status());
  CHECK(guest.ok());
  std::vector<std::string> nodes;
  for (const auto& device : answer.devices()) nodes.push_back(device.host_path());
  CHECK(nodes == std::vector<std::string>{"/dev/vfio/vfio", "/dev/vfio/0", "/dev/vfio/1"});
}

TEST_CASE("VGPU: what an agent had made when it was killed is found and finished", "[mdev]") {
  const VgpuNode node;
  const std::vector<Action> actions = GroupOf(node.PlanNow(), 5).actions;
  REQUIRE(node.Carry({actions[0]}).status.ok());
  CHECK(GroupOf(node.PlanNow(), 5).actions == std::vector<Action>{actions[1]});
  // From a picture of before: the first is there already, which is no failure.
  CHECK(node.Carry(actions).done == 2);
  CHECK(GroupOf(node.PlanNow(), 5).verdict == Verdict::kBound);
  CHECK_FALSE(node.Has(Ours(2)));
}

TEST_CASE("VGPU: what the kernel refuses is told with its code", "[mdev]") {
  const VgpuNode node;
  const std::vector<Action> actions = GroupOf(node.PlanNow(), 5).actions;
  SECTION("no room after all") {
    REQUIRE(node.mount->Control("fault {device: '0000:3b:00.0', op: create, errno: ENOSPC}") == 0);
    const Outcome outcome = node.Carry(actions);
    CHECK(outcome.done == 0);
    CHECK(ErrnoOf(outcome.status) == ENOSPC);
    CHECK(CodeOfFailure(actions[0], outcome.status) == Code::kProbeRefused);
  }
  SECTION("the uuid is another type's") {
    REQUIRE(node.Carry({actions[0]}).status.ok());
    const Action other = CreateMdev{At(kT4), "nvidia-225", Ours(0)};
    const Outcome outcome = node.Carry({other});
    CHECK(CodeOfFailure(other, outcome.status) == Code::kDriverChanged);
    CHECK_THAT(Message(outcome.status), Catch::Contains("is of type nvidia-222, not nvidia-225"));
  }
}

TEST_CASE("VGPU: release removes ours, not what others made, and not what is held", "[mdev]") {
  const VgpuNode node;
  node.CreateByHand();
  REQUIRE(node.Carry(GroupOf(node.PlanNow(), 5).actions).done == 1);
  REQUIRE(node.Has(Ours(0)));
  const NodeFacts facts = node.Facts();
  Custody custody = Asked();
  const int group = *FindMdev(facts.mdev, Ours(0))->group;
  REQUIRE(node.mount->Control("hold " + std::to_string(group) + " 4242 qemu-kvm") == 0);
  custody.inquiry->use = ReadUse(*node.tree, facts, {}, {group});
  const auto held = PlanMdevRelease(facts, custody, {Ours(0), kForeign});
  REQUIRE(held.size() == 1);
  REQUIRE(held[0].refusals.size() == 1);
  CHECK_THAT(held[0].refusals[0].text, Catch::EndsWith("is in use by pid 4242 (qemu-kvm)"));
  REQUIRE(node.mount->Control("free " + std::to_string(group)) == 0);
  custody.inquiry->use = ReadUse(*node.tree, facts, {}, {group});
  const auto free = PlanMdevRelease(facts, custody, {Ours(0), kForeign});
  CHECK(node.Carry(free[0].actions).status.ok());
  CHECK_FALSE(node.Has(Ours(0)));
  CHECK(node.Has(kForeign));
  CHECK(node.Carry(free[0].actions).status.ok());  // gone already
}

}  // namespace
}  // namespace vfio_agent
