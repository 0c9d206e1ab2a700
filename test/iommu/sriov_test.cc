// Virtual functions as units: which are selected, when they are made, and how they go again.
#include <catch2/catch.hpp>

#include "iommu/plan/plan.h"
#include "iommu/plan/release.h"
#include "test/support/facts.h"

namespace vfio_agent {
namespace {

constexpr char kPf[] = "0000:0b:00.0";
constexpr char kVf1[] = "0000:0b:00.1";
constexpr char kVf2[] = "0000:0b:00.2";

PciDevice Pf(int vfs = 0, const std::string& driver = "nvidia") {
  PciDevice pf = Gpu(kPf, 20, driver);
  pf.sriov_total_vfs = Fact<int>(4);
  pf.vfs_autoprobe = Fact<bool>(true);
  if (vfs > 0) pf.virtfns.push_back(At(kVf1));
  if (vfs > 1) pf.virtfns.push_back(At(kVf2));
  return pf;
}

NodeFacts WithVfsMade(const std::string& driver = "") {
  return Node({Pf(2), Vf(kVf1, 21, kPf, driver), Vf(kVf2, 22, kPf, driver)});
}

Policy VfPolicy(std::optional<int> vfs) {
  Policy policy = DefaultPolicy();
  policy.resources[0].name = "nvidia.com/vf";
  policy.resources[0].sriov = Sriov{.vfs = vfs};
  return policy;
}

Plan PlanVfsOf(const NodeFacts& facts, std::optional<int> vfs, const Custody& custody = Asked()) {
  return MakePlan(facts, VfPolicy(vfs), {}, custody);
}

Custody InUse(const std::string& address, UseKind kind, const std::string& text) {
  Custody custody = Asked();
  custody.inquiry->use.devices[At(address)] = {{.kind = kind, .text = text, .remedy = "move it"}};
  return custody;
}

Records Made(const std::string& step = kStepDone) {
  Records records = TakenFrom({{kPf, "nvidia"}});
  Record& record = records.begin()->second;
  record.to.clear();
  record.step = step;
  record.vfs = 2;
  record.vfs_autoprobe = true;
  return records;
}

std::string FirstRefusal(const Plan& plan) {
  return plan.refusals.empty() ? "" : Codes(plan.refusals) + ": " + plan.refusals[0].text;
}

TEST_CASE("VFs are made on a free physical function, which keeps its driver", "[iommu]") {
  const Plan plan = PlanVfsOf(Node({Pf()}), 2);
  CHECK(plan.refusals.empty());
  CHECK(Roles(GroupOf(plan, 20)) == "0000:0b:00.0 physical keep");
  CHECK(GroupOf(plan, 20).verdict == Verdict::kBind);
  CHECK(Shell(GroupOf(plan, 20).actions) ==
        "echo 0 > /sys/bus/pci/devices/0000:0b:00.0/sriov_drivers_autoprobe\n"
        "echo 2 > /sys/bus/pci/devices/0000:0b:00.0/sriov_numvfs");
  CHECK(plan.resources.empty());
}

TEST_CASE("VFs that are there are units, their physical function is not", "[iommu]") {
  for (const std::optional<int> vfs : {std::optional<int>(), std::optional<int>(2)}) {
    const Plan plan = PlanVfsOf(WithVfsMade(), vfs);
    CHECK(plan.refusals.empty());
    CHECK(GroupOf(plan, 20).verdict == (vfs ? Verdict::kBound : Verdict::kUnselected));
    CHECK(GroupOf(plan, 20).actions.empty());
    CHECK(Roles(GroupOf(plan, 21)) == "0000:0b:00.1 primary bind vfio-pci");
    REQUIRE(plan.resources.size() == 1);
    CHECK(plan.resources[0].name == "nvidia.com/vf");
    CHECK(plan.resources[0].units.size() == 2);
  }
}

TEST_CASE("a function that says it is a VF and a bridge is a bridge", "[iommu]") {
  NodeFacts facts = WithVfsMade();
  for (PciDevice& device : facts.devices) {
    if (device.IsVf()) device.config.is_bridge = true;
  }
  const Plan plan = PlanVfsOf(facts, std::nullopt);
  CHECK(plan.resources.empty());
  CHECK(GroupOf(plan, 21).verdict == Verdict::kUnselected);
}

TEST_CASE("without a number no VF is made", "[iommu]") {
  const Plan plan = PlanVfsOf(Node({Pf()}), std::nullopt);
  CHECK(GroupOf(plan, 20).actions.empty());
  CHECK(plan.question.empty());
}

TEST_CASE("VFs are named by their own id where the entry has no name", "[iommu]") {
  NodeFacts facts = WithVfsMade();
  Find(facts, kVf1).device = Find(facts, kVf2).device = 0x1e07;
  Policy policy = VfPolicy(std::nullopt);
  policy.resources[0].name.clear();
  const Plan plan = MakePlan(facts, policy, TestNames(), Asked());
  REQUIRE(plan.resources.size() == 1);
  CHECK(plan.resources[0].name == "nvidia.com/TU102_GEFORCE_RTX_2080_TI_REV__A");
}

TEST_CASE("a VF that the entry excludes is left alone, the others are not", "[iommu]") {
  Policy policy = VfPolicy(std::nullopt);
  policy.resources[0].exclude = {{.address = At(kVf1)}};
  const Plan plan = MakePlan(WithVfsMade(), policy, {}, Asked());
  REQUIRE(plan.resources.size() == 1);
  REQUIRE(plan.resources[0].units.size() == 1);
  CHECK(plan.resources[0].units[0].id == kVf2);
  CHECK(GroupOf(plan, 21).verdict == Verdict::kRefused);
  CHECK(GroupOf(plan, 21).actions.empty());
}

TEST_CASE("a VF goes by what its physical function is selected for first", "[iommu]") {
  Policy policy = VfPolicy(std::nullopt);
  policy.resources.insert(policy.resources.begin(), DefaultPolicy().resources[0]);
  const Plan plan = MakePlan(WithVfsMade(), policy, TestNames(), Asked());
  CHECK(Codes(plan.refusals) == "pf-has-vfs 0000:0b:00.0");
  CHECK(GroupOf(plan, 21).verdict == Verdict::kUnselected);
}

TEST_CASE("a physical function in the group of its VF is never a companion of it", "[iommu]") {
  const Plan plan = PlanVfsOf(Node({Pf(1), Vf(kVf1, 20, kPf, "")}), std::nullopt);
  CHECK(Codes(plan.refusals) == "foreign-member 0000:0b:00.0");
  CHECK(Roles(GroupOf(plan, 20)) == "0000:0b:00.0 foreign none\n0000:0b:00.1 primary none");
}

TEST_CASE("a number that is not 0 is not changed", "[iommu]") {
  const Plan plan = PlanVfsOf(WithVfsMade(), 3);
  CHECK(FirstRefusal(plan) ==
        "pf-has-vfs 0000:0b:00.0: 0000:0b:00.0 (10de:2330, driver nvidia) has 2 virtual functions "
        "enabled, and sriov.vfs is 3: the number is changed from 0 only, and those that are there "
        "stay in service");
  CHECK(GroupOf(plan, 20).actions.empty());
  CHECK(GroupOf(plan, 21).verdict == Verdict::kBind);  // what is there serves all the same
}

TEST_CASE("what the kernel would refuse is not tried", "[iommu]") {
  PciDevice pf = Pf();
  SECTION("more than the device can have") {
    CHECK(Codes(PlanVfsOf(Node({pf}), 4).refusals).empty());
    CHECK_THAT(FirstRefusal(PlanVfsOf(Node({pf}), 5)),
               Catch::StartsWith("probe-refused 0000:0b:00.0") &&
                   Catch::Contains("can have 4 virtual functions (sriov_totalvfs), and"));
  }
  SECTION("no SR-IOV") {
    pf.sriov_total_vfs = Fact<int>();
    CHECK_THAT(FirstRefusal(PlanVfsOf(Node({pf}), 1)), Catch::Contains("has no SR-IOV"));
  }
  SECTION("no driver, or vfio-pci, which makes none") {
    for (const char* driver : {"", "vfio-pci"}) {
      CHECK_THAT(FirstRefusal(PlanVfsOf(Node({Pf(0, driver)}), 1)),
                 Catch::Contains("has no driver of the host that could make"));
    }
  }
  SECTION("no IOMMU: they could not be given away") {
    CHECK_THAT(FirstRefusal(PlanVfsOf(NodeWithoutIommu({pf}), 1)),
               Catch::StartsWith("iommu-off 0000:0b:00.0"));
  }
}

TEST_CASE("a physical function that the host uses is not touched", "[iommu]") {
  const NodeFacts facts = Node({Pf()});
  const auto [kind, code] =
      GENERATE(table<UseKind, std::string>({{UseKind::kNetwork, "in-use-network"},
                                            {UseKind::kStorage, "in-use-storage"},
                                            {UseKind::kDisplay, "in-use-display"},
                                            {UseKind::kProcess, "in-use-holder"}}));
  const Custody custody = InUse(kPf, kind, "is in use");
  const Plan plan = PlanVfsOf(facts, 2, custody);
  CHECK(Codes(plan.refusals) == code + " 0000:0b:00.0");
  CHECK(GroupOf(plan, 20).actions.empty());
  Policy overruled = VfPolicy(2);
  overruled.guard_override = {At(kPf)};
  const Plan taken = MakePlan(facts, overruled, {}, custody);
  CHECK(taken.refusals.empty());
  CHECK(GroupOf(taken, 20).actions.size() == 2);
  CHECK(Codes(taken.warnings) == code + " 0000:0b:00.0");
}

TEST_CASE("a physical function that shows the console is not touched", "[iommu]") {
  NodeFacts facts = Node({Pf()});
  SECTION("boot display") {
    Find(facts, kPf).boot_vga = Fact<bool>(true);
    CHECK(Codes(PlanVfsOf(facts, 2).refusals) == "boot-display 0000:0b:00.0");
  }
  SECTION("frame buffer") {
    facts.frame_buffers[At(kPf)] = {.text = "is efifb's", .remedy = "boot without it"};
    CHECK(Codes(PlanVfsOf(facts, 2).refusals) == "in-use-display 0000:0b:00.0");
  }
}

TEST_CASE("who uses a physical function is asked before VFs are made of it, and not after",
          "[iommu]") {
  const Question before = MakePlan(Node({Pf()}), VfPolicy(2), {}).question;
  CHECK(before.unbound == std::vector{At(kPf)});
  CHECK(before.groups == std::vector{20});
  CHECK(MakePlan(WithVfsMade("vfio-pci"), VfPolicy(2), {}).question.empty());
}

TEST_CASE("release takes the VFs from vfio-pci, removes them and restores autoprobe", "[iommu]") {
  const NodeFacts facts = WithVfsMade("vfio-pci");
  for (const char* wanted : {kPf, "both VFs"}) {
    std::vector<PciAddress> list = {At(kVf1), At(kVf2)};
    if (wanted == std::string(kPf)) list = {At(kPf)};
    const auto releases =
        PlanRelease(facts, Asked(Made()), WithVfs(facts, Made(), std::move(list)));
    REQUIRE(releases.size() == 1);
    CHECK(releases[0].group == 20);
    CHECK(releases[0].vf_groups == std::vector{21, 22});
    CHECK(releases[0].refusals.empty());
    CHECK(Shell(releases[0].actions) ==
          "echo 0000:0b:00.1 > /sys/bus/pci/drivers/vfio-pci/unbind\n"
          "echo 0000:0b:00.2 > /sys/bus/pci/drivers/vfio-pci/unbind\n"
          "echo 0 > /sys/bus/pci/devices/0000:0b:00.0/sriov_numvfs\n"
          "echo 1 > /sys/bus/pci/devices/0000:0b:00.0/sriov_drivers_autoprobe");
  }
}

TEST_CASE("an autoprobe that was off stays off", "[iommu]") {
  Records records = Made();
  records.begin()->second.vfs_autoprobe = false;
  const auto releases = PlanRelease(WithVfsMade(), Asked(records), {At(kPf)});
  REQUIRE(releases.size() == 1);
  CHECK(Shell(releases[0].actions) == "echo 0 > /sys/bus/pci/devices/0000:0b:00.0/sriov_numvfs");
}

TEST_CASE("one VF of several goes without the others", "[iommu]") {
  const NodeFacts facts = WithVfsMade("vfio-pci");
  const auto releases = PlanRelease(facts, Asked(Made()), WithVfs(facts, Made(), {At(kVf1)}));
  REQUIRE(releases.size() == 1);
  CHECK(releases[0].group == 21);
  CHECK(Shell(releases[0].actions).find("numvfs") == std::string::npos);
}

TEST_CASE("VFs that somebody else has made are never removed", "[iommu]") {
  const NodeFacts facts = WithVfsMade("vfio-pci");
  CHECK(WithVfs(facts, {}, {At(kVf1), At(kVf2)}).size() == 2);
  CHECK(PlanRelease(facts, Asked(), {At(kPf)}).empty());
  // Noted, and then somebody else was first.
  const Records noted = Made(kStepNoted);
  CHECK(Shell(PlanUndo(facts, noted, {At(kPf)})) ==
        "echo 1 > /sys/bus/pci/devices/0000:0b:00.0/sriov_drivers_autoprobe");
}

TEST_CASE("VFs are not removed while a guest or a host driver has one", "[iommu]") {
  SECTION("a guest") {
    Custody custody = Asked(Made());
    custody.inquiry->use.groups[22] = {{.pid = 7, .command = "qemu"}};
    const auto releases = PlanRelease(WithVfsMade("vfio-pci"), custody, {At(kPf)});
    REQUIRE(releases.size() == 1);
    CHECK(Codes(releases[0].refusals) == "held 0000:0b:00.0");
    CHECK(releases[0].actions.empty());
  }
  SECTION("a pod perhaps: its VFs' groups are named, not its own") {
    Custody custody = Asked(Made());
    custody.inquiry->claims = {.known = false, .why_unknown = "no kubelet"};
    const auto releases = PlanRelease(WithVfsMade("vfio-pci"), custody, {At(kPf)});
    REQUIRE(releases.size() == 1);
    REQUIRE(releases[0].refusals.size() == 2);
    CHECK_THAT(releases[0].refusals[0].text, Catch::StartsWith("group 21 is in use by a pod"));
  }
  SECTION("a host driver") {
    const auto releases = PlanRelease(WithVfsMade("nvidia"), Asked(Made()), {At(kPf)});
    REQUIRE(releases.size() == 1);
    CHECK(Codes(releases[0].refusals) ==
          "driver-changed 0000:0b:00.1\ndriver-changed 0000:0b:00.2");
    CHECK(releases[0].actions.empty());
  }
}

TEST_CASE("what was cut off while VFs were made is finished, or put back", "[iommu]") {
  const Custody custody = Asked(Made("vfs"));
  SECTION("still wanted: they are there, only the record is closed") {
    const NodeFacts facts = WithVfsMade();
    const Plan plan = PlanVfsOf(facts, 2, custody);
    CHECK(FinishedRecords(custody.records, plan).size() == 1);
    CHECK(PlanRecovery(facts, custody, plan).empty());
  }
  SECTION("not wanted any more: they are removed") {
    const NodeFacts facts = WithVfsMade();
    const Plan plan = MakePlan(facts, Policy{}, {}, custody);
    CHECK(plan.question.groups == std::vector{20, 21, 22});
    const auto recovery = PlanRecovery(facts, custody, plan);
    REQUIRE(recovery.size() == 1);
    CHECK(Shell(recovery[0].actions) ==
          "echo 0 > /sys/bus/pci/devices/0000:0b:00.0/sriov_numvfs\n"
          "echo 1 > /sys/bus/pci/devices/0000:0b:00.0/sriov_drivers_autoprobe");
  }
  SECTION("not wanted any more, but a guest has one") {
    Custody held = custody;
    held.inquiry->use.groups[21] = {{.pid = 7, .command = "qemu"}};
    const NodeFacts facts = WithVfsMade("vfio-pci");
    CHECK(PlanRecovery(facts, held, MakePlan(facts, Policy{}, {}, held)).empty());
  }
  SECTION("none there yet: made") {
    const Plan plan = PlanVfsOf(Node({Pf()}), 2, custody);
    CHECK(GroupOf(plan, 20).actions.size() == 2);
  }
}

}  // namespace
}  // namespace vfio_agent
