// Units of bundles: their states, who has them, and sets of units that are given together.
#include <algorithm>
#include <catch2/catch.hpp>

#include "iommu/plan/release.h"
#include "test/iommu/bundle_nodes.h"

namespace vfio_agent {
namespace {

TEST_CASE("one part that is refused refuses the unit for its reason, and no other", "[iommu]") {
  NodeFacts facts = SmallBoard();
  facts.devices.push_back(Nvme("0000:43:00.0", 23));
  const Plan plan = PlanOf(facts, Bundled({Gpus(2), Nics(2)}));
  CHECK(Units(plan) == "11+21+12+22 ready\n31+41+32+42 refused\n");
  CHECK(plan.resources[0].units[1].reason.starts_with("foreign-member: 0000:43:00.0"));
}

TEST_CASE("nothing is taken from the host for a bundle of which a part is refused", "[iommu]") {
  NodeFacts facts = SmallBoard();
  facts.devices.push_back(Nvme("0000:43:00.0", 23));
  for (const char* gpu : {"0000:11:00.0", "0000:31:00.0"}) Find(facts, gpu).driver = "nvidia";
  const Plan plan = PlanOf(facts, Bundled({Gpus(2), Nics(2)}), Asked({}));
  CHECK(GroupOf(plan, *Find(facts, "0000:11:00.0").group).verdict == Verdict::kBind);
  const GroupPlan& other = GroupOf(plan, *Find(facts, "0000:31:00.0").group);
  CHECK(other.verdict == Verdict::kRefused);
  CHECK(other.actions.empty());
  REQUIRE(Codes(other.refusals) == "group-split 0000:31:00.0");
  CHECK_THAT(other.refusals[0].text, Catch::Contains("foreign-member: 0000:43:00.0"));
  // What is bound already stays.
  CHECK(GroupOf(plan, *Find(facts, "0000:41:00.0").group).refusals.empty());
}

TEST_CASE("a unit is as bad as the worst of its parts", "[iommu]") {
  NodeFacts facts = SmallBoard();
  Policy policy = Bundled({Gpus(4), Nvswitches()});
  facts.vfio_nodes.erase("2");
  CHECK(Units(PlanOf(facts, policy)).ends_with("unhealthy\n"));
  Find(facts, "0000:21:00.0").driver = "nvidia";
  const Plan plan = PlanOf(facts, policy);
  CHECK(Units(plan).ends_with("to-bind\n"));
  CHECK(plan.resources[0].units[0].reason == "waits to be bound");
}

TEST_CASE("a bundle that nothing isolates is called unsafe, whole or by device", "[iommu]") {
  NodeFacts facts = SmallBoard();
  facts.groups.at(22).noiommu = true;
  facts.vfio_nodes.erase("22");
  facts.vfio_nodes.insert("noiommu-22");
  Policy policy = Bundled({Gpus(2), Nics(2)});
  policy.resources[0].noiommu = true;
  policy.resources[0].bundle_by_device = GENERATE(false, true);
  const Resource resource = PlanOf(facts, policy).resources.at(0);
  for (const Unit& unit : resource.units) {
    INFO(unit.id);
    CHECK(unit.state == UnitState::kReady);
    const std::vector<int> groups = GroupsOf(unit);
    CHECK(unit.reason.starts_with("noiommu: UNSAFE") == (std::ranges::count(groups, 22) > 0));
  }
}

TEST_CASE("the parts of a bundle are on the nearest node with processors, where that is asked for",
          "[iommu]") {
  NodeFacts facts = SmallBoard();
  facts.nearest_cpu_nodes = {{1, 5}};
  Policy policy = Bundled({Gpus(2), Nics(2)});
  policy.resources[0].numa_nearest = true;
  CHECK(PlanOf(facts, policy).resources[0].units[1].numa_node == 5);
  policy.resources[0].bundle_by_device = true;
  const Resource by_device = PlanOf(facts, policy).resources.at(0);
  REQUIRE(by_device.units.size() == 8);
  for (const Unit& unit : by_device.units) {
    CHECK(unit.numa_node == (Find(facts, unit.id).numa_node == 0 ? 0 : 5));
  }
}

TEST_CASE("the pod that has a bundle has all of its groups", "[iommu]") {
  Custody custody{.tenancy = Tenancy{}};
  custody.tenancy->claims.list = {{"team", "vm", "compute", kBundleName, "0000:11:00.0"}};
  custody.tenancy->open = {{20, {}}, {13, {Holder{.pid = 7}}}};
  const Policy policy = Bundled({Gpus(2), Nics(2)});
  // Group 13 is the other unit's, and open: no pod has that.
  CHECK(Units(PlanOf(SmallBoard(), policy, custody)) ==
        "11+21+12+22 held\n31+41+32+42 unhealthy\n");
  custody.tenancy->claims.list.clear();
  custody.tenancy->open.clear();
  custody.tenancy->grants = {{.resource = kBundleName, .unit = "0000:31:00.0", .group = 12}};
  CHECK(Units(PlanOf(SmallBoard(), policy, custody)) == "11+21+12+22 ready\n31+41+32+42 held\n");
}

TEST_CASE("nothing is written to any group of a bundle that a pod has", "[iommu]") {
  NodeFacts facts = SmallBoard();
  Find(facts, "0000:22:00.0").driver = "mlx5_core";
  Custody custody = Asked(TakenFrom({{"0000:22:00.0", "mlx5_core"}}));
  custody.inquiry->claims.list = {{"team", "vm", "compute", kBundleName, "0000:11:00.0"}};
  const Policy policy = Bundled({Gpus(2), Nics(2)});
  const Plan plan = PlanOf(facts, policy, custody);
  CHECK(Codes(plan.refusals) == "held");
  CHECK(GroupOf(plan, 21).verdict == Verdict::kRefused);
  custody.inquiry->claims.list[0].unit = "0000:31:00.0";
  CHECK(GroupOf(PlanOf(facts, policy, custody), 21).verdict == Verdict::kBind);
  AddParts(PartsOf(plan.resources), custody.given);
  CHECK(WhyHeld(custody, facts, 23) == "pod team/vm (container compute)");
  CHECK(WhyHeld(custody, facts, 21).empty());
}

TEST_CASE("a bundle of which a pod has a part, by an earlier configuration, is withheld",
          "[iommu]") {
  Custody custody{.tenancy = Tenancy{}};
  custody.tenancy->claims.list = {{"team", "vm", "compute", "nvidia.com/nic", "0000:22:00.0"}};
  CHECK(Units(PlanOf(SmallBoard(), Bundled({Gpus(2), Nics(2)}), custody)) ==
        "11+21+12+22 withheld\n31+41+32+42 ready\n");
}

// Six GPUs, as pairs 01+02, 03+04 and 05+06. A pod was given the second pair, and the kubelet says
// so by 0000:03:00.0 alone.
struct Pairs {
  Pairs() {
    std::vector<PciDevice> devices;
    for (int i = 1; i <= 6; ++i) {
      devices.push_back(Gpu(absl::StrFormat("0000:%02d:00.0", i), 10 + i, "vfio-pci"));
    }
    facts = Node(devices);
    custody.tenancy = Tenancy{};
    custody.tenancy->claims.list = {{"team", "vm", "compute", kBundleName, "0000:03:00.0"}};
    custody.inquiry->claims = custody.tenancy->claims;
    custody.given = {{{kBundleName, "0000:03:00.0"}, {At("0000:04:00.0")}},
                     {{kBundleName, "0000:04:00.0"}, {At("0000:05:00.0")}}};  // of a pod that ended
  }

  void FallOff(std::string_view address) {
    std::erase_if(facts.devices,
                  [&](const PciDevice& device) { return device.address == At(address); });
  }

  NodeFacts facts;
  Custody custody = Asked();
};

TEST_CASE("what a pod was given as a part is withheld when bundles are dealt anew", "[iommu]") {
  Pairs pairs;
  const Policy policy = Bundled({Gpus(2)});
  CHECK(Units(PlanOf(pairs.facts, policy, pairs.custody)) ==
        "01+02 ready\n03+04 held\n05+06 ready\n");
  pairs.FallOff("0000:01:00.0");
  const Plan plan = PlanOf(pairs.facts, policy, pairs.custody);
  CHECK(Units(plan) == "02+03 withheld\n04+05 withheld\n06 refused\n");
  const Unit& unit = plan.resources[0].units[1];
  CHECK(unit.reason ==
        "group-split: 0000:04:00.0 is a part of what pod team/vm (container compute) has as "
        "0000:03:00.0");
  CHECK(unit.pods.empty());
  pairs.custody.tenancy->grants = {{.resource = kBundleName, .unit = "0000:04:00.0", .group = 14}};
  CHECK(Units(PlanOf(pairs.facts, policy, pairs.custody)).find("04+05 withheld") !=
        std::string::npos);
  pairs.custody.tenancy->grants.clear();
  pairs.custody.tenancy->claims.list.clear();
  CHECK(Units(PlanOf(pairs.facts, policy, pairs.custody)) ==
        "02+03 ready\n04+05 ready\n06 refused\n");
}

TEST_CASE("what a pod was given as a part is withheld under another configuration", "[iommu]") {
  Pairs pairs;
  const Policy single{.resources = {{.name = "nvidia.com/single", .select = Gpus(0).select}}};
  CHECK(Units(PlanOf(pairs.facts, single, pairs.custody)) ==
        "01 ready\n02 ready\n03 refused\n04 withheld\n05 ready\n06 ready\n");
  // An answer about the same id, but of another resource than the pod's.
  pairs.custody.given = {{{"nvidia.com/single", "0000:03:00.0"}, {At("0000:04:00.0")}}};
  CHECK(Units(PlanOf(pairs.facts, single, pairs.custody)).find("04 ready") != std::string::npos);
}

TEST_CASE("the rest of a group that a pod was given is withheld when its first function falls off",
          "[iommu]") {
  NodeFacts facts =
      Node({Gpu("0000:04:00.0", 13, "vfio-pci"), Gpu("0000:05:00.0", 14, "vfio-pci")});
  Custody custody{.tenancy = Tenancy{}};
  custody.tenancy->claims.list = {{"team", "vm", "compute", kBundleName, "0000:03:00.0"}};
  custody.given = {{{kBundleName, "0000:03:00.0"}, {At("0000:04:00.0")}}};
  const Policy policy{
      .resources = {
          {.name = kBundleName, .select = Gpus(0).select, .shared_group = SharedGroup::kUnit}}};
  CHECK(Units(PlanOf(facts, policy, custody)) == "04 withheld\n05 ready\n");
}

TEST_CASE("nothing is written to what a pod was given as a part, nor is it released", "[iommu]") {
  Pairs pairs;
  pairs.custody.records = TakenFrom({{"0000:04:00.0", "nvidia"}, {"0000:05:00.0", "nvidia"}});
  const Policy single{.resources = {{.name = "nvidia.com/single", .select = Gpus(0).select}}};
  const auto releases =
      PlanRelease(pairs.facts, pairs.custody, {At("0000:04:00.0"), At("0000:05:00.0")});
  REQUIRE(releases.size() == 2);
  CHECK(Codes(releases[0].refusals) == "held 0000:04:00.0");
  CHECK(releases[1].refusals.empty());
  Find(pairs.facts, "0000:04:00.0").driver = "nvidia";
  Find(pairs.facts, "0000:05:00.0").driver = "nvidia";
  const Plan plan = PlanOf(pairs.facts, single, pairs.custody);
  CHECK(GroupOf(plan, 14).verdict == Verdict::kRefused);
  CHECK(GroupOf(plan, 15).verdict == Verdict::kBind);
}

TEST_CASE("a bundle by device has an id for each, and is given whole only", "[iommu]") {
  NodeFacts facts = SmallBoard();
  Policy policy = Bundled({Gpus(1), Nics(1, true)});
  policy.resources[0].bundle_by_device = true;
  const Resource resource = PlanOf(facts, policy).resources.at(0);
  CHECK(resource.units.size() == 8);
  CHECK(resource.only_partitions);
  REQUIRE(resource.partitions.size() == 4);
  CHECK(resource.partitions[1] == std::vector<std::string>{"0000:21:00.0", "0000:22:00.0"});
  CHECK(resource.units[0].groups.empty());
  CHECK(resource.units[0].pairs.size() == 1);
  CHECK(resource.units[1].pairs.empty());
}

TEST_CASE("a part by device is withheld while another of its bundle is not ready", "[iommu]") {
  NodeFacts facts = SmallBoard();
  facts.vfio_nodes.erase("20");
  Policy policy = Bundled({Gpus(1), Nics(1, true)});
  policy.resources[0].bundle_by_device = true;
  const Plan plan = PlanOf(facts, policy);
  CHECK(Units(plan).starts_with("11 withheld\n12 unhealthy\n21 ready\n22 ready\n"));
  CHECK(plan.resources[0].units[0].reason ==
        "group-split: 0000:12:00.0, of the same bundle, is unhealthy: node-missing: /dev/vfio/20 "
        "is not there");
}

TEST_CASE("without an IOMMU a bundle is refused for that", "[iommu]") {
  const Plan plan =
      PlanOf(NodeWithoutIommu(SmallBoard().devices), Bundled({Gpus(4), Nvswitches()}));
  CHECK(Units(plan) == "11+21+31+41+02+03 refused\n");
  CHECK(plan.resources[0].units[0].reason.starts_with("iommu-off"));
  CHECK(GroupsOf(plan.resources[0].units[0]).empty());
}

TEST_CASE("partitions are addresses or numbers in the order of addresses", "[iommu]") {
  Policy policy{.resources = {{.name = kBundleName,
                               .select = Gpus(0).select,
                               .partitions = {{"1", "0"}, {"0000:31:00.0", "0000:41:00.0"}}}}};
  Resource resource = PlanOf(SmallBoard(), policy).resources.at(0);
  CHECK(resource.partitions ==
        std::vector<std::vector<std::string>>{{"0000:11:00.0", "0000:21:00.0"},
                                              {"0000:31:00.0", "0000:41:00.0"}});
  CHECK_FALSE(resource.only_partitions);
  CHECK(resource.partitions_fault.empty());
  policy.resources[0].partitions.push_back({"2", "4"});
  resource = PlanOf(SmallBoard(), policy).resources.at(0);
  CHECK(resource.partitions.empty());
  CHECK(resource.partitions_fault ==
        "its table of partitions names unit 4, and here are units 0 to 3 only");
  policy.resources[0].partitions = {{"0000:99:00.0"}};
  const Plan plan = PlanOf(SmallBoard(), policy);
  CHECK(plan.resources[0].partitions_fault ==
        "its table of partitions names 0000:99:00.0, which is no unit of it here");
  REQUIRE(Codes(plan.warnings) == "group-split");
  CHECK(plan.warnings[0].text ==
        "of nvidia.com/board a machine can have one unit only: its table of partitions names "
        "0000:99:00.0, which is no unit of it here");
  CHECK(plan.refusals.empty());
}

}  // namespace
}  // namespace vfio_agent
