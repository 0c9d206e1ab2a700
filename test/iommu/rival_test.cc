// Other managers of the same devices, which the kubelet's list of pods shows.
#include "iommu/tenancy/rival.h"

#include <catch2/catch.hpp>

#include "test/support/facts.h"

namespace vfio_agent {
namespace {

constexpr char kGpu[] = "0000:3b:00.0";
constexpr char kVfioManager[] = "gpu-operator/nvidia-vfio-manager-x7k2p";

Custody WithRivals(std::vector<std::string> pods) {
  Custody custody = Asked();
  custody.tenancy.emplace();
  custody.tenancy->claims.rivals = std::move(pods);
  return custody;
}

TEST_CASE("other managers are told by the names of their pods, and nobody else is", "[iommu]") {
  const auto what = [](std::string_view pod) {
    const RivalKind* const kind = FindRivalKind(pod);
    return kind == nullptr ? "" : std::string(kind->what);
  };
  CHECK(what("nvidia-vfio-manager-x7k2p") == "NVIDIA's vfio-manager");
  CHECK(what("nvidia-sandbox-device-plugin-daemonset-9c8dz") == "NVIDIA's sandbox device plugin");
  CHECK(what("nvidia-kata-sandbox-device-plugin-daemonset-9c8dz") ==
        "NVIDIA's sandbox device plugin for Kata");
  CHECK(what("nvidia-kubevirt-gpu-dp-daemonset-abcde") == "NVIDIA's KubeVirt device plugin");
  CHECK(what("rbln-vfio-manager-2jx9f") == "Rebellions' vfio-manager");
  CHECK(what("harvester-harvester-pcidevices-controller-7qm68") ==
        "Harvester's PCI devices controller");
  CHECK(what("harvester-pcidevices-controller-fgml9") == "Harvester's PCI devices controller");
  CHECK(what("nvidia-vgpu-device-manager-zx4t8") == "NVIDIA's vGPU device manager");
  CHECK(what("nvidia-dra-driver-gpu-kubelet-plugin-q2w5b") == "NVIDIA's DRA driver");
  CHECK(what("rbln-sandbox-device-plugin-2jx9f") == "Rebellions' sandbox device plugin");
  CHECK(what("sriov-network-config-daemon-8xk2m") == "the SR-IOV network operator");
  CHECK(what("dra-driver-sriov-kubeletplugin-t5zq7") == "the SR-IOV DRA driver");
  CHECK(what("net-dra-driver-sriov-kubeletplugin-t5zq7") == "the SR-IOV DRA driver");
  CHECK(what("sriov-device-plugin-6mq4d").empty());             // serves, and binds nothing
  CHECK(what("nvidia-device-plugin-daemonset-gr9kt").empty());  // for containers
  CHECK(what("nvidia-dcgm-exporter-jcnsh").empty());
  CHECK(what("vfio-agent-4qk7c").empty());
  CHECK(what("").empty());
}

TEST_CASE("a tenant's pod that has such a name in its own is no other manager", "[iommu]") {
  CHECK(FindRivalKind("my-nvidia-vfio-manager-x7k2p") == nullptr);
  CHECK(FindRivalKind("nvidia-vfio-manager") == nullptr);
  CHECK(FindRivalKind("nvidia-vfio-manager-test-x7k2p") == nullptr);
  CHECK(FindRivalKind("nvidia-vfio-manager-x7k2") == nullptr);
  CHECK(FindRivalKind("nvidia-vfio-manager-X7K2P") == nullptr);
  CHECK(FindRivalKind("nvidia-vfio-managerx7k2p") == nullptr);
  CHECK(FindRivalKind("mypcidevices-controller-fgml9") == nullptr);
  CHECK(FindRivalKind("pcidevices-controller-0") == nullptr);
  CHECK(FindRivalKind("pcidevices-controller-fgml9") != nullptr);
}

TEST_CASE("NVIDIA's DRA driver may serve containers alone: a warning, and the card is bound",
          "[iommu]") {
  const Custody custody = WithRivals({"dra/nvidia-dra-driver-gpu-kubelet-plugin-q2w5b"});
  const Plan plan = MakePlan(Node({Gpu(kGpu, 17)}), DefaultPolicy(), TestNames(), custody);
  CHECK(plan.refusals.empty());
  CHECK(GroupOf(plan, 17).verdict == Verdict::kBind);
  CHECK(Codes(plan.warnings) == "foreign-manager 0000:3b:00.0");
}

TEST_CASE("managers of virtual functions are told of beside adapters, and beside nothing else",
          "[iommu]") {
  const std::string pod =
      GENERATE("net/sriov-network-config-daemon-8xk2m", "net/dra-driver-sriov-kubeletplugin-t5zq7");
  CAPTURE(pod);
  const NodeFacts facts =
      Node({Gpu(kGpu, 17), Function("0000:5e:00.0", 18, "mlx5_core", "15b3:1021", 0x020000)});
  Policy policy = DefaultPolicy();
  policy.resources.push_back(
      {.name = "mellanox.com/nic", .select = {{.vendor = uint16_t{0x15b3}}}});
  const Plan plan = MakePlan(facts, policy, TestNames(), WithRivals({pod}));
  CHECK(plan.refusals.empty());
  CHECK(GroupOf(plan, 18).verdict == Verdict::kBind);
  CHECK(Codes(plan.warnings) == "foreign-manager 0000:5e:00.0");
  CHECK_THAT(plan.warnings.at(0).remedy, Catch::Contains("leave the adapters of this agent out"));
}

TEST_CASE("a card that another manager has to do with is not taken, and its pod is named",
          "[iommu]") {
  const NodeFacts facts = Node({Gpu(kGpu, 17), Audio("0000:3b:00.1", 17)});
  Policy policy = DefaultPolicy();
  const Custody custody = WithRivals({kVfioManager});
  const auto make = [&] { return MakePlan(facts, policy, TestNames(), custody); };
  CHECK(Codes(make().refusals) == "foreign-manager 0000:3b:00.0\nforeign-manager 0000:3b:00.1");
  CHECK(GroupOf(make(), 17).actions.empty());
  CHECK_THAT(make().refusals[0].text,
             Catch::Contains("another manager: NVIDIA's vfio-manager (pod gpu-operator/"
                             "nvidia-vfio-manager-x7k2p) takes every card off"));
  CHECK_THAT(make().refusals[0].remedy,
             Catch::Contains("nvidia.com/gpu.deploy.vfio-manager=false"));
  SECTION("unless an operator overrules it for these addresses") {
    policy.guard_override = {At(kGpu), At("0000:3b:00.1")};
    CHECK(make().refusals.empty());
    CHECK(GroupOf(make(), 17).verdict == Verdict::kBind);
    CHECK_THAT(make().warnings[0].text, Catch::Contains("overruled by guard.override"));
  }
}

NodeFacts WithPhysical() {
  PciDevice pf = Gpu(kGpu, 17);
  pf.sriov_total_vfs = Fact<int>(4);
  pf.vfs_autoprobe = Fact<bool>(true);
  return Node({pf});
}

Policy MakingVfs() {
  Policy policy = DefaultPolicy();
  policy.resources[0].name = "nvidia.com/vf";
  policy.resources[0].sriov = Sriov{.vfs = 2};
  return policy;
}

TEST_CASE("no virtual functions are made of a card that another manager has to do with",
          "[iommu]") {
  const NodeFacts facts = WithPhysical();
  Policy policy = MakingVfs();
  const std::string pod =
      GENERATE(as<std::string>(), kVfioManager, "ns/pcidevices-controller-fgml9");
  CAPTURE(pod);
  const Custody custody = WithRivals({pod});
  const auto make = [&] { return MakePlan(facts, policy, TestNames(), custody); };
  CHECK(Codes(make().refusals) == "foreign-manager 0000:3b:00.0");
  CHECK(GroupOf(make(), 17).verdict == Verdict::kRefused);
  CHECK(GroupOf(make(), 17).actions.empty());
  CHECK_THAT(make().refusals[0].text, Catch::Contains("(pod " + pod + ")"));
  SECTION("unless an operator overrules it") {
    policy.guard_override = {At(kGpu)};
    CHECK(make().refusals.empty());
    CHECK(GroupOf(make(), 17).actions.size() == 2);
    CHECK_THAT(make().warnings[0].text, Catch::Contains("overruled by guard.override"));
  }
}

TEST_CASE("virtual functions that are there stay served beside another manager, with a warning",
          "[iommu]") {
  PciDevice pf = WithPhysical().devices[0];
  pf.virtfns = {At("0000:3b:00.4"), At("0000:3b:00.5")};
  const NodeFacts facts = Node(
      {pf, Vf("0000:3b:00.4", 18, kGpu, "vfio-pci"), Vf("0000:3b:00.5", 19, kGpu, "vfio-pci")});
  const Plan plan = MakePlan(facts, MakingVfs(), TestNames(), WithRivals({kVfioManager}));
  CHECK(plan.refusals.empty());
  CHECK(GroupOf(plan, 18).verdict == Verdict::kBound);
  CHECK(Codes(plan.warnings) == "foreign-manager 0000:3b:00.4\nforeign-manager 0000:3b:00.5");
}

TEST_CASE("a manager of vGPUs, or one that may leave the card alone, hinders no virtual functions",
          "[iommu]") {
  const bool warns = GENERATE(false, true);
  const Custody custody = WithRivals({warns ? "dra/nvidia-dra-driver-gpu-kubelet-plugin-q2w5b"
                                            : "ops/nvidia-vgpu-device-manager-zx4t8"});
  const Plan plan = MakePlan(WithPhysical(), MakingVfs(), TestNames(), custody);
  CHECK(plan.refusals.empty());
  CHECK(GroupOf(plan, 17).actions.size() == 2);
  CHECK(Codes(plan.warnings) == (warns ? "foreign-manager 0000:3b:00.0" : ""));
}

TEST_CASE("a manager of another vendor's devices hinders nothing", "[iommu]") {
  const NodeFacts facts = Node({Gpu(kGpu, 17)});
  const Custody custody = WithRivals({"rbln/rbln-vfio-manager-2jx9f"});
  const Plan plan = MakePlan(facts, DefaultPolicy(), TestNames(), custody);
  CHECK(plan.refusals.empty());
  CHECK(plan.warnings.empty());
}

TEST_CASE("what is bound already stays served beside another manager, with a warning", "[iommu]") {
  NodeFacts facts = Node({Gpu(kGpu, 17)});
  Find(facts, kGpu).driver = "vfio-pci";
  facts = Node(facts.devices);
  Custody custody = WithRivals({"harvester-system/harvester-pcidevices-controller-fgml9"});
  custody.inquiry.reset();
  const Plan plan = MakePlan(facts, DefaultPolicy(), TestNames(), custody);
  CHECK(plan.refusals.empty());
  CHECK(GroupOf(plan, 17).verdict == Verdict::kBound);
  CHECK(Codes(plan.warnings) == "foreign-manager 0000:3b:00.0");
  CHECK_THAT(plan.warnings[0].text, Catch::Contains("without a claim of its own off vfio-pci"));
}

}  // namespace
}  // namespace vfio_agent
