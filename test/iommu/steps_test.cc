// The steps of a bind, and which driver they lead to.
#include <catch2/catch.hpp>

#include "iommu/plan/plan.h"
#include "test/support/facts.h"

namespace vfio_agent {
namespace {

constexpr char kGrace[] = "pci:v000010DEd00002342sv000010DEsd000016EBbc03sc02i00";

std::string Steps(const NodeFacts& facts, const Policy& policy = DefaultPolicy()) {
  return Shell(GroupOf(MakePlan(facts, policy, TestNames()), 17).actions);
}

// A Grace GPU on a node where `drivers` are loaded; its variant driver is known by alias.
NodeFacts GraceNode(const std::set<std::string>& drivers) {
  NodeFacts facts = Node({Function("0000:3b:00.0", 17, "", "10de:2342", 0x030200)});
  facts.devices[0].modalias = kGrace;
  facts.drivers = drivers;
  facts.modules.vfio_aliases = {
      {.pattern = "pci:v000010DEd*sv*sd*bc*sc*i*", .module = "other_vfio_pci"},
      {.pattern = "pci:v000010DEd00002342sv*sd*bc*sc*i*", .module = "nvgrace_gpu_vfio_pci"},
      {.pattern = "pci:v000015B3d0000101Esv0sd0bc0sc0i0", .module = "mlx5_vfio_pci"}};
  return facts;
}

std::string TargetOf(const NodeFacts& facts, const Policy& policy = DefaultPolicy()) {
  return GroupOf(MakePlan(facts, policy, {}), 17).members.at(0).to;
}

TEST_CASE("each member is overridden, unbound and probed, then the node is awaited", "[iommu]") {
  CHECK(Steps(Node({Gpu("0000:3b:00.0", 17), Audio("0000:3b:00.1", 17, "")})) ==
        "echo vfio-pci > /sys/bus/pci/devices/0000:3b:00.0/driver_override\n"
        "echo 0000:3b:00.0 > /sys/bus/pci/drivers/nvidia/unbind\n"
        "echo 0000:3b:00.0 > /sys/bus/pci/drivers_probe\n"
        "echo vfio-pci > /sys/bus/pci/devices/0000:3b:00.1/driver_override\n"
        "echo 0000:3b:00.1 > /sys/bus/pci/drivers_probe\n"
        "ls -l /dev/vfio/17");
}

TEST_CASE("the module is loaded once and first, where the driver is not there", "[iommu]") {
  NodeFacts facts = Node({Gpu("0000:3b:00.0", 17, ""), Audio("0000:3b:00.1", 17, "")});
  facts.drivers.clear();
  CHECK(Steps(facts) ==
        "modprobe vfio-pci\n"
        "echo vfio-pci > /sys/bus/pci/devices/0000:3b:00.0/driver_override\n"
        "echo 0000:3b:00.0 > /sys/bus/pci/drivers_probe\n"
        "echo vfio-pci > /sys/bus/pci/devices/0000:3b:00.1/driver_override\n"
        "echo 0000:3b:00.1 > /sys/bus/pci/drivers_probe\n"
        "ls -l /dev/vfio/17");
}

TEST_CASE("a driver that is there needs no installed module", "[iommu]") {
  NodeFacts facts = Node({Gpu("0000:3b:00.0", 17)});
  facts.modules = {};
  CHECK(DefaultPlan(facts).refusals.empty());
}

TEST_CASE("a member that is on a vfio driver already is kept", "[iommu]") {
  const NodeFacts facts =
      Node({Gpu("0000:3b:00.0", 17, "nvgrace_gpu_vfio_pci"), Audio("0000:3b:00.1", 17)});
  const Plan plan = DefaultPlan(facts);
  CHECK(Roles(GroupOf(plan, 17)) ==
        "0000:3b:00.0 primary keep\n0000:3b:00.1 companion bind vfio-pci");
  CHECK(Steps(facts).find("3b:00.0") == std::string::npos);
}

TEST_CASE("a group that is bound whole has nothing left to do", "[iommu]") {
  const Plan plan =
      DefaultPlan(Node({Gpu("0000:3b:00.0", 17, "vfio-pci"), Audio("0000:3b:00.1", 17, "vfio-pci"),
                        Bridge("0000:00:01.0", 17)}));
  CHECK(GroupOf(plan, 17).verdict == Verdict::kBound);
  CHECK(GroupOf(plan, 17).actions.empty());
}

TEST_CASE("foreign members and bridges are never touched", "[iommu]") {
  const std::string steps = Steps(
      Node({Bridge("0000:00:01.0", 17), Gpu("0000:3b:00.0", 17), Nvme("0000:3c:00.0", 17, "")}));
  CHECK(steps.find("00:01.0") == std::string::npos);
  CHECK(steps.find("3c:00.0") == std::string::npos);
}

TEST_CASE("the variant driver with the fewest wildcards is taken", "[iommu]") {
  CHECK(TargetOf(GraceNode({"vfio-pci", "nvgrace_gpu_vfio_pci"})) == "nvgrace_gpu_vfio_pci");
  NodeFacts reversed = GraceNode({"vfio-pci", "nvgrace_gpu_vfio_pci"});
  std::swap(reversed.modules.vfio_aliases[0], reversed.modules.vfio_aliases[1]);
  CHECK(TargetOf(reversed) == "nvgrace_gpu_vfio_pci");
}

TEST_CASE("a device that no variant is made for goes to vfio-pci", "[iommu]") {
  NodeFacts facts = GraceNode({"vfio-pci"});
  facts.devices[0].modalias = "pci:v00001002d0000738Csv00001002sd00000C34bc12sc00i00";
  facts.devices[0].class_code = 0x030200;
  CHECK(TargetOf(facts) == "vfio-pci");
  facts.devices[0].modalias.clear();
  CHECK(TargetOf(facts) == "vfio-pci");
}

TEST_CASE("BIND-11: the driver directory is taken as it is spelled", "[iommu]") {
  CHECK(TargetOf(GraceNode({"vfio-pci", "nvgrace-gpu-vfio-pci"})) == "nvgrace-gpu-vfio-pci");
  CHECK(TargetOf(GraceNode({"vfio-pci", "nvgrace_gpu_vfio_pci"})) == "nvgrace_gpu_vfio_pci");
}

TEST_CASE("BIND-11: a variant that is not loaded yet is loaded and named as its module",
          "[iommu]") {
  CHECK(Steps(GraceNode({"vfio-pci"})) ==
        "modprobe nvgrace_gpu_vfio_pci\n"
        "echo nvgrace_gpu_vfio_pci > /sys/bus/pci/devices/0000:3b:00.0/driver_override\n"
        "echo 0000:3b:00.0 > /sys/bus/pci/drivers_probe\n"
        "ls -l /dev/vfio/17");
}

TEST_CASE("only the primary gets the variant driver", "[iommu]") {
  NodeFacts facts = GraceNode({"vfio-pci", "nvgrace_gpu_vfio_pci"});
  PciDevice audio = Audio("0000:3b:00.1", 17);
  audio.modalias = kGrace;
  facts.devices.push_back(audio);
  CHECK(GroupOf(DefaultPlan(facts), 17).members.at(1).to == "vfio-pci");
}

TEST_CASE("a driver that the configuration names wins over the alias", "[iommu]") {
  const auto [wanted, taken] = GENERATE(table<std::string, std::string>(
      {{"vfio-pci", "vfio-pci"}, {"vfio_pci", "vfio-pci"}, {"mlx5_vfio_pci", "mlx5_vfio_pci"}}));
  CAPTURE(wanted);
  Policy policy = DefaultPolicy();
  policy.resources[0].vfio_driver = wanted;
  CHECK(TargetOf(GraceNode({"vfio-pci", "mlx5_vfio_pci"}), policy) == taken);
  CHECK(TargetOf(GraceNode({}), policy) == taken);
}

TEST_CASE("a driver that the configuration names and nobody has is refused", "[iommu]") {
  Policy policy = DefaultPolicy();
  policy.resources[0].vfio_driver = "no_such_driver";
  const Plan plan = MakePlan(GraceNode({"vfio-pci"}), policy, {});
  CHECK(Codes(plan.refusals) == "vfio-driver-missing 0000:3b:00.0");
}

}  // namespace
}  // namespace vfio_agent
