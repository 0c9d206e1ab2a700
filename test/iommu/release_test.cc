#include "iommu/plan/release.h"

#include <catch2/catch.hpp>

#include "test/support/facts.h"

namespace vfio_agent {
namespace {

constexpr char kGpu[] = "0000:3b:00.0";
constexpr char kAudio[] = "0000:3b:00.1";

// A bound card; nvidia and snd_hda_intel are loaded.
NodeFacts Bound() {
  NodeFacts facts = Node({Gpu(kGpu, 17, "vfio-pci"), Audio(kAudio, 17, "vfio-pci")});
  facts.drivers.insert({"nvidia", "snd_hda_intel"});
  return facts;
}

std::vector<GroupRelease> Release(const NodeFacts& facts, const Records& records) {
  return PlanRelease(facts, Asked(records), {At(kGpu)});
}

// Group 17 is open by a process, and its GPU a pod's.
Custody InUse(int group = 17) {
  Custody custody = Asked();
  custody.inquiry->use.groups[group] = {{.pid = 4711, .command = "qemu-system-x86"}};
  return custody;
}

TEST_CASE("the whole group goes back to the drivers that it came from", "[iommu]") {
  const auto releases = Release(Bound(), TakenFrom({{kGpu, "nvidia"}, {kAudio, "snd_hda_intel"}}));
  REQUIRE(releases.size() == 1);
  CHECK(releases[0].group == 17);
  CHECK(releases[0].members == std::vector<PciAddress>{At(kGpu), At(kAudio)});
  CHECK(releases[0].refusals.empty());
  CHECK(releases[0].actions ==
        std::vector<Action>{SetOverride{At(kGpu), "nvidia"}, Unbind{At(kGpu), "vfio-pci"},
                            Probe{At(kGpu), "nvidia"}, SetOverride{At(kGpu), ""},
                            SetOverride{At(kAudio), "snd_hda_intel"},
                            Unbind{At(kAudio), "vfio-pci"}, Probe{At(kAudio), "snd_hda_intel"},
                            SetOverride{At(kAudio), ""}});
}

TEST_CASE("asked for by a companion, the group is still given back whole and once", "[iommu]") {
  const auto releases = PlanRelease(Bound(), Asked(), {At(kAudio), At(kGpu)});
  REQUIRE(releases.size() == 1);
  CHECK(releases[0].members.size() == 2);
}

TEST_CASE("a device of which nothing is known goes to the driver that the kernel finds",
          "[iommu]") {
  NodeFacts facts = Node({Gpu(kGpu, 17, "vfio-pci")});
  CHECK(Release(facts, {}).at(0).actions == std::vector<Action>{SetOverride{At(kGpu), ""},
                                                                Unbind{At(kGpu), "vfio-pci"},
                                                                Probe{At(kGpu), ""}});
}

TEST_CASE("a device that had no driver gets none back", "[iommu]") {
  NodeFacts facts = Node({Gpu(kGpu, 17, "vfio-pci")});
  CHECK(Release(facts, TakenFrom({{kGpu, ""}})).at(0).actions ==
        std::vector<Action>{SetOverride{At(kGpu), ""}, Unbind{At(kGpu), "vfio-pci"}});
}

TEST_CASE("a driver that is gone is not waited for", "[iommu]") {
  NodeFacts facts = Node({Gpu(kGpu, 17, "vfio-pci")});
  CHECK(Release(facts, TakenFrom({{kGpu, "nvidia"}})).at(0).actions ==
        std::vector<Action>{SetOverride{At(kGpu), ""}, Unbind{At(kGpu), "vfio-pci"},
                            Probe{At(kGpu), ""}});
}

TEST_CASE("a variant vfio driver is taken off by its own name", "[iommu]") {
  NodeFacts facts = Node({Gpu(kGpu, 17, "nvgrace_gpu_vfio_pci")});
  CHECK(Release(facts, {}).at(0).actions.at(1) == Action{Unbind{At(kGpu), "nvgrace_gpu_vfio_pci"}});
}

TEST_CASE("a group that somebody has open is not touched, and who it is is said", "[iommu]") {
  const auto releases = PlanRelease(Bound(), InUse(), {At(kGpu)});
  REQUIRE(releases.size() == 1);
  CHECK(releases[0].actions.empty());
  CHECK(Codes(releases[0].refusals) == "held 0000:3b:00.0");
  CHECK(releases[0].refusals[0].text == "group 17 is in use by pid 4711 (qemu-system-x86)");
}

TEST_CASE("a group that a pod has is not touched, and the pod is named", "[iommu]") {
  Custody custody = Asked();
  custody.inquiry->claims.list = {{.pod_namespace = "shop",
                                   .pod = "virt-launcher-db-x2x",
                                   .container = "compute",
                                   .resource = "nvidia.com/GH100",
                                   .unit = kGpu}};
  const auto releases = PlanRelease(Bound(), custody, {At(kAudio)});
  CHECK(releases.at(0).actions.empty());
  CHECK(releases[0].refusals.at(0).text ==
        "group 17 is in use by pod shop/virt-launcher-db-x2x (container compute)");
}

TEST_CASE("a kubelet that does not answer holds everything that a pod could have", "[iommu]") {
  Custody custody = Asked();
  custody.inquiry->claims = {.known = false, .why_unknown = "connection refused"};
  CHECK(PlanRelease(Bound(), custody, {At(kGpu)}).at(0).actions.empty());
  SECTION("and nothing that none can have: here with its host driver, and never taken") {
    const NodeFacts facts = Node({Gpu(kGpu, 17, "nvidia")});
    CHECK(WhyHeld(custody, facts, 17).empty());
  }
}

TEST_CASE("who holds a group for certain is told apart from who perhaps does", "[iommu]") {
  Custody custody = Asked();
  custody.inquiry->claims = {.known = false, .why_unknown = "connection refused, or no socket"};
  custody.inquiry->use.groups[17] = {{.pid = 4242, .command = "qemu-kvm"}};
  CHECK(WhyHeld(custody, Bound(), 17) ==
        "pid 4242 (qemu-kvm); and a pod perhaps: connection refused, or no socket");
}

TEST_CASE("a holder of another group holds nothing here", "[iommu]") {
  CHECK(PlanRelease(Bound(), InUse(18), {At(kGpu)}).at(0).refusals.empty());
}

TEST_CASE("a group with a write that does not return is not written to again", "[iommu]") {
  Custody custody = Asked();
  custody.underway.stuck[17] = {.device = At(kGpu), .command = "echo x"};
  const auto releases = PlanRelease(Bound(), custody, {At(kGpu)});
  CHECK(releases.at(0).actions.empty());
  CHECK(Codes(releases[0].refusals) == "unbind-stuck 0000:3b:00.0");
}

TEST_CASE("a record of an earlier boot does not say where a device goes", "[iommu]") {
  NodeFacts facts = Node({Gpu(kGpu, 17, "vfio-pci")});
  facts.drivers.insert("nvidia");
  Records records = TakenFrom({{kGpu, "nvidia"}});
  records.begin()->second.this_boot = false;
  CHECK(Release(facts, records).at(0).actions.back() == Action{Probe{At(kGpu), ""}});
}

TEST_CASE("the driver_override and D3cold that were found are put back last", "[iommu]") {
  Records records = TakenFrom({{kGpu, "nvidia"}, {kAudio, ""}});
  records.at(At(kGpu)).driver_override = "nvidia";
  records.at(At(kGpu)).d3cold_allowed = true;
  records.at(At(kAudio)).driver_override = "vfio-pci";
  records.at(At(kAudio)).d3cold_allowed = false;
  CHECK(Release(Bound(), records).at(0).actions ==
        std::vector<Action>{SetOverride{At(kGpu), "nvidia"}, Unbind{At(kGpu), "vfio-pci"},
                            Probe{At(kGpu), "nvidia"}, SetD3cold{At(kGpu), true},
                            SetOverride{At(kAudio), ""}, Unbind{At(kAudio), "vfio-pci"},
                            SetOverride{At(kAudio), "vfio-pci"}});
}

TEST_CASE("what is not on a vfio driver, and bridges, stay as they are", "[iommu]") {
  NodeFacts facts = Node({Bridge("0000:00:01.0", 17, "vfio-pci"), Gpu(kGpu, 17, "vfio-pci"),
                          Audio(kAudio, 17), Nvme("0000:3c:00.0", 17, "")});
  const auto releases = Release(facts, {});
  CHECK(releases.at(0).members == std::vector<PciAddress>{At(kGpu)});
}

TEST_CASE("a noted member that never left its driver loses the override", "[iommu]") {
  NodeFacts facts = Node({Gpu(kGpu, 17, "nvidia")});
  CHECK(Release(facts, TakenFrom({{kGpu, "nvidia"}})).at(0).actions ==
        std::vector<Action>{SetOverride{At(kGpu), ""}});
}

TEST_CASE("a member that was left without its driver half-way is given back too", "[iommu]") {
  NodeFacts facts = Node({Gpu(kGpu, 17, "")});
  facts.drivers.insert("nvidia");
  CHECK(Release(facts, TakenFrom({{kGpu, "nvidia"}})).at(0).actions ==
        std::vector<Action>{SetOverride{At(kGpu), "nvidia"}, Probe{At(kGpu), "nvidia"},
                            SetOverride{At(kGpu), ""}});
  CHECK(Release(facts, {}).empty());
}

TEST_CASE("nothing to give back is no release", "[iommu]") {
  CHECK(Release(Node({Gpu(kGpu, 17)}), {}).empty());
  CHECK(PlanRelease(Bound(), Asked(), {}).empty());
  CHECK(PlanRelease(Bound(), Asked(), {At("0000:99:00.0")}).empty());
  CHECK(Release(NodeWithoutIommu({Gpu(kGpu, 17, "vfio-pci")}), {}).empty());
}

TEST_CASE("only the groups that are asked for are given back", "[iommu]") {
  const NodeFacts facts = Node({Gpu(kGpu, 17, "vfio-pci"), Gpu("0000:5e:00.0", 18, "vfio-pci")});
  const auto releases = Release(facts, {});
  REQUIRE(releases.size() == 1);
  CHECK(releases[0].group == 17);
}

TEST_CASE("an undo moves just what was moved", "[iommu]") {
  NodeFacts facts = Bound();
  const Records records = TakenFrom({{kGpu, "nvidia"}, {kAudio, "snd_hda_intel"}});
  CHECK(PlanUndo(facts, records, {At(kAudio)}) ==
        std::vector<Action>{SetOverride{At(kAudio), "snd_hda_intel"},
                            Unbind{At(kAudio), "vfio-pci"}, Probe{At(kAudio), "snd_hda_intel"},
                            SetOverride{At(kAudio), ""}});
  CHECK(PlanUndo(facts, records, {}).empty());
}

TEST_CASE("an undo of a device that has its own driver takes only the override away", "[iommu]") {
  const NodeFacts facts = Node({Gpu(kGpu, 17)});
  CHECK(PlanUndo(facts, TakenFrom({{kGpu, "nvidia"}}), {At(kGpu)}) ==
        std::vector<Action>{SetOverride{At(kGpu), ""}});
}

TEST_CASE("an undo binds a device that is between two drivers", "[iommu]") {
  NodeFacts facts = Node({Gpu(kGpu, 17, "")});
  facts.drivers.insert("nvidia");
  CHECK(PlanUndo(facts, TakenFrom({{kGpu, "nvidia"}}), {At(kGpu)}) ==
        std::vector<Action>{SetOverride{At(kGpu), "nvidia"}, Probe{At(kGpu), "nvidia"},
                            SetOverride{At(kGpu), ""}});
}

TEST_CASE("an undo skips what is gone and what nothing was noted of", "[iommu]") {
  const NodeFacts facts = Node({Gpu(kGpu, 17, "vfio-pci")});
  CHECK(PlanUndo(facts, TakenFrom({{"0000:99:00.0", "nvidia"}}), {At("0000:99:00.0"), At(kGpu)})
            .empty());
}

// A card whose bind was cut off after the GPU's unbind; the configuration has dropped it since.
struct CutOff {
  NodeFacts facts = Node({Gpu(kGpu, 17, ""), Audio(kAudio, 17)});
  Custody custody = Asked(TakenFrom({{kGpu, "nvidia"}, {kAudio, "snd_hda_intel"}}));
  Policy policy;

  CutOff() {
    facts.drivers.insert({"nvidia", "snd_hda_intel"});
    custody.records.at(At(kGpu)).step = "probe";
    custody.records.at(At(kAudio)).step = kStepNoted;
  }
  std::vector<GroupRelease> Recovery() const {
    return PlanRecovery(facts, custody, MakePlan(facts, policy, TestNames(), custody));
  }
};

TEST_CASE("what was cut off and nobody wants any more is put back", "[iommu]") {
  const CutOff node;
  const auto recovery = node.Recovery();
  REQUIRE(recovery.size() == 1);
  CHECK(recovery[0].actions ==
        std::vector<Action>{SetOverride{At(kGpu), "nvidia"}, Probe{At(kGpu), "nvidia"},
                            SetOverride{At(kGpu), ""}, SetOverride{At(kAudio), ""}});
}

TEST_CASE("what was cut off and is still wanted is finished, not put back", "[iommu]") {
  CutOff node;
  node.policy = DefaultPolicy();
  CHECK(node.Recovery().empty());
  const Plan plan = MakePlan(node.facts, node.policy, TestNames(), node.custody);
  CHECK(GroupOf(plan, 17).verdict == Verdict::kBind);
}

TEST_CASE("what is in use, stuck or taken for good is not put back by a recovery", "[iommu]") {
  CutOff node;
  SECTION("a guest has the group") {
    Find(node.facts, kGpu).driver = "vfio-pci";
    node.custody.inquiry->use.groups[17] = {{.pid = 1, .command = "qemu"}};
  }
  SECTION("an earlier write has not returned") { node.custody.underway.stuck[17] = {}; }
  SECTION("the records are done") {
    for (auto& entry : node.custody.records) entry.second.step = kStepDone;
  }
  SECTION("the records are of an earlier boot") {
    for (auto& entry : node.custody.records) entry.second.this_boot = false;
  }
  CHECK(node.Recovery().empty());
}

TEST_CASE("a plan that the kernel carried out before the cut has its records closed", "[iommu]") {
  Records records = TakenFrom({{kGpu, "nvidia"}, {kAudio, "snd_hda_intel"}});
  records.at(At(kAudio)).step = "probe";
  const Plan plan = GuardedPlan(Bound(), Asked(records));
  const std::vector<Record> finished = FinishedRecords(records, plan);
  REQUIRE(finished.size() == 1);
  CHECK(finished[0].address == At(kAudio));
  CHECK(finished[0].step == kStepDone);
}

}  // namespace
}  // namespace vfio_agent
