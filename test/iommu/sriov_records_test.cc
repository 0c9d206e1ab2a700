// What the journal says of virtual functions, and what is believed of it.
#include <catch2/catch.hpp>

#include "iommu/plan/made_vfs.h"
#include "iommu/plan/plan.h"
#include "iommu/plan/release.h"
#include "test/support/facts.h"

namespace vfio_agent {
namespace {

constexpr char kPf[] = "0000:0b:00.0";
constexpr char kVf1[] = "0000:0b:00.1";
constexpr char kVf2[] = "0000:0b:00.2";
constexpr char kAutoprobeOn[] =
    "echo 1 > /sys/bus/pci/devices/0000:0b:00.0/sriov_drivers_autoprobe";

NodeFacts TwoVfs(const std::string& driver = "") {
  PciDevice pf = Gpu(kPf, 20);
  pf.sriov_total_vfs = Fact<int>(4);
  pf.vfs_autoprobe = Fact<bool>(true);
  pf.virtfns = {At(kVf1), At(kVf2)};
  return Node({pf, Vf(kVf1, 21, kPf, driver), Vf(kVf2, 22, kPf, driver)});
}

Records Made(int vfs, const std::string& step = kStepDone) {
  Records records = TakenFrom({{kPf, "nvidia"}});
  Record& record = records.begin()->second;
  record.to.clear();
  record.step = step;
  record.vfs = vfs;
  record.vfs_autoprobe = true;
  return records;
}

TEST_CASE("VFs of another number than the agent made are somebody else's and stay", "[iommu]") {
  const Records four = Made(4);
  const auto of_pf = PlanRelease(TwoVfs(), Asked(four), {At(kPf)});
  REQUIRE(of_pf.size() == 1);
  CHECK(of_pf[0].members == std::vector{At(kPf)});
  CHECK(Shell(of_pf[0].actions) == kAutoprobeOn);
  CHECK(WithVfs(TwoVfs(), four, {At(kPf)}) == std::vector{At(kPf)});
  CHECK(WithVfs(TwoVfs(), four, {At(kVf1), At(kVf2)}).size() == 2);
  // A host driver may have them: they do not go.
  CHECK(PlanRelease(TwoVfs("nvidia"), Asked(four), {At(kPf)}).at(0).refusals.empty());
}

TEST_CASE("VFs on a variant driver of any name are the guests' and go with their device",
          "[iommu]") {
  NodeFacts facts = TwoVfs("hisi_acc");
  CHECK_FALSE(PlanRelease(facts, Asked(Made(2)), {At(kPf)}).at(0).refusals.empty());
  for (const char* vf : {kVf1, kVf2}) Find(facts, vf).vfio_cdev = "vfio0";
  const auto releases = PlanRelease(facts, Asked(Made(2)), {At(kPf)});
  CHECK(releases.at(0).refusals.empty());
  CHECK_THAT(Shell(releases[0].actions), Catch::Contains("echo 0 > ") && Catch::Contains("unbind"));
}

TEST_CASE("VFs that somebody made after the agent was killed before it could are not the agent's",
          "[iommu]") {
  const Custody custody = Asked(Made(2, GENERATE("noted", "autoprobe")));
  Policy policy = DefaultPolicy();
  policy.resources[0].name = "nvidia.com/vf";
  policy.resources[0].sriov = Sriov{.vfs = 2};
  const Plan plan = MakePlan(TwoVfs("vfio-pci"), policy, {}, custody);
  REQUIRE(GroupOf(plan, 20).verdict == Verdict::kBound);
  CHECK(FinishedRecords(custody.records, plan).empty());
  // Its record goes, and so does what it has written.
  const auto recovery = PlanRecovery(TwoVfs("vfio-pci"), custody, plan);
  REQUIRE(recovery.size() == 1);
  CHECK(recovery[0].members == std::vector{At(kPf)});
  CHECK(Shell(recovery[0].actions) == kAutoprobeOn);
}

TEST_CASE("an undo removes the VFs that the steps before the failed one have made", "[iommu]") {
  Records records = Made(2, kStepNoted);
  const std::vector<Action> steps = {SetAutoprobe{At(kPf), false}, SetVfs{At(kPf), 2}};
  NoteMadeVfs(std::span(steps).first(1), records);
  CHECK(Shell(PlanUndo(TwoVfs(), records, {At(kPf)})) == kAutoprobeOn);
  NoteMadeVfs(steps, records);
  CHECK(Shell(PlanUndo(TwoVfs(), records, {At(kPf)})) ==
        std::string("echo 0 > /sys/bus/pci/devices/0000:0b:00.0/sriov_numvfs\n") + kAutoprobeOn);
}

}  // namespace
}  // namespace vfio_agent
