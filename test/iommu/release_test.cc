#include "iommu/release.h"

#include <catch2/catch.hpp>

#include "test/support/facts.h"

namespace vfio_agent {
namespace {

constexpr char kGpu[] = "0000:3b:00.0";
constexpr char kAudio[] = "0000:3b:00.1";

Origins From(const std::vector<std::pair<std::string, std::string>>& drivers) {
  Origins origins;
  for (const auto& [address, driver] : drivers) {
    origins[At(address)] = {.address = At(address), .driver = driver};
  }
  return origins;
}

// A bound card; nvidia and snd_hda_intel are loaded.
NodeFacts Bound() {
  NodeFacts facts = Node({Gpu(kGpu, 17, "vfio-pci"), Audio(kAudio, 17, "vfio-pci")});
  facts.drivers.insert({"nvidia", "snd_hda_intel"});
  return facts;
}

std::vector<GroupRelease> Release(const NodeFacts& facts, const Origins& origins,
                                  const Holders& holders = {}) {
  return PlanRelease(facts, origins, holders, {At(kGpu)});
}

TEST_CASE("the whole group goes back to the drivers that it came from", "[iommu]") {
  const auto releases = Release(Bound(), From({{kGpu, "nvidia"}, {kAudio, "snd_hda_intel"}}));
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
  const auto releases = PlanRelease(Bound(), {}, {}, {At(kAudio), At(kGpu)});
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
  CHECK(Release(facts, From({{kGpu, ""}})).at(0).actions ==
        std::vector<Action>{SetOverride{At(kGpu), ""}, Unbind{At(kGpu), "vfio-pci"}});
}

TEST_CASE("a driver that is gone is not waited for", "[iommu]") {
  NodeFacts facts = Node({Gpu(kGpu, 17, "vfio-pci")});
  CHECK(Release(facts, From({{kGpu, "nvidia"}})).at(0).actions ==
        std::vector<Action>{SetOverride{At(kGpu), ""}, Unbind{At(kGpu), "vfio-pci"},
                            Probe{At(kGpu), ""}});
}

TEST_CASE("a variant vfio driver is taken off by its own name", "[iommu]") {
  NodeFacts facts = Node({Gpu(kGpu, 17, "nvgrace_gpu_vfio_pci")});
  CHECK(Release(facts, {}).at(0).actions.at(1) == Action{Unbind{At(kGpu), "nvgrace_gpu_vfio_pci"}});
}

TEST_CASE("a group that somebody has open is not touched, and who it is is said", "[iommu]") {
  const auto releases =
      Release(Bound(), {}, {{17, {"pid 4711 (qemu-system-x86)", "pid 12 (probe)"}}});
  REQUIRE(releases.size() == 1);
  CHECK(releases[0].actions.empty());
  CHECK(Codes(releases[0].refusals) == "held 0000:3b:00.0");
  CHECK(releases[0].refusals[0].text ==
        "group 17 is in use by pid 4711 (qemu-system-x86), pid 12 (probe)");
}

TEST_CASE("a holder of another group holds nothing here", "[iommu]") {
  CHECK(Release(Bound(), {}, {{18, {"pid 1 (x)"}}, {17, {}}}).at(0).refusals.empty());
}

TEST_CASE("what is not on a vfio driver, and bridges, stay as they are", "[iommu]") {
  NodeFacts facts = Node({Bridge("0000:00:01.0", 17, "vfio-pci"), Gpu(kGpu, 17, "vfio-pci"),
                          Audio(kAudio, 17), Nvme("0000:3c:00.0", 17, "")});
  const auto releases = Release(facts, From({{"0000:3c:00.0", ""}}));
  CHECK(releases.at(0).members == std::vector<PciAddress>{At(kGpu)});
}

TEST_CASE("a noted member that never left its driver loses the override", "[iommu]") {
  NodeFacts facts = Node({Gpu(kGpu, 17, "nvidia")});
  CHECK(Release(facts, From({{kGpu, "nvidia"}})).at(0).actions ==
        std::vector<Action>{SetOverride{At(kGpu), ""}});
}

TEST_CASE("a member that was left without its driver half-way is given back too", "[iommu]") {
  NodeFacts facts = Node({Gpu(kGpu, 17, "")});
  facts.drivers.insert("nvidia");
  CHECK(Release(facts, From({{kGpu, "nvidia"}})).at(0).actions ==
        std::vector<Action>{SetOverride{At(kGpu), "nvidia"}, Probe{At(kGpu), "nvidia"},
                            SetOverride{At(kGpu), ""}});
  CHECK(Release(facts, {}).empty());
}

TEST_CASE("nothing to give back is no release", "[iommu]") {
  CHECK(Release(Node({Gpu(kGpu, 17)}), {}).empty());
  CHECK(PlanRelease(Bound(), {}, {}, {}).empty());
  CHECK(PlanRelease(Bound(), {}, {}, {At("0000:99:00.0")}).empty());
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
  const Origins origins = From({{kGpu, "nvidia"}, {kAudio, "snd_hda_intel"}});
  CHECK(PlanUndo(facts, origins, {At(kAudio)}) ==
        std::vector<Action>{SetOverride{At(kAudio), "snd_hda_intel"},
                            Unbind{At(kAudio), "vfio-pci"}, Probe{At(kAudio), "snd_hda_intel"},
                            SetOverride{At(kAudio), ""}});
  CHECK(PlanUndo(facts, origins, {}).empty());
}

TEST_CASE("an undo of a device that has its own driver takes only the override away", "[iommu]") {
  const NodeFacts facts = Node({Gpu(kGpu, 17)});
  CHECK(PlanUndo(facts, From({{kGpu, "nvidia"}}), {At(kGpu)}) ==
        std::vector<Action>{SetOverride{At(kGpu), ""}});
}

TEST_CASE("an undo binds a device that is between two drivers", "[iommu]") {
  NodeFacts facts = Node({Gpu(kGpu, 17, "")});
  facts.drivers.insert("nvidia");
  CHECK(PlanUndo(facts, From({{kGpu, "nvidia"}}), {At(kGpu)}) ==
        std::vector<Action>{SetOverride{At(kGpu), "nvidia"}, Probe{At(kGpu), "nvidia"},
                            SetOverride{At(kGpu), ""}});
}

TEST_CASE("an undo skips what is gone and what nothing was noted of", "[iommu]") {
  const NodeFacts facts = Node({Gpu(kGpu, 17, "vfio-pci")});
  CHECK(
      PlanUndo(facts, From({{"0000:99:00.0", "nvidia"}}), {At("0000:99:00.0"), At(kGpu)}).empty());
}

}  // namespace
}  // namespace vfio_agent
