// Who has what: held, withheld and free units, and which grants a look settles.
#include "iommu/tenancy/tenancy.h"

#include <catch2/catch.hpp>

#include "iommu/plan/plan.h"
#include "test/support/facts.h"

namespace vfio_agent {
namespace {

constexpr char kH100[] = "nvidia.com/GH100_H100_SXM5_80GB";

PodClaim Claim(const std::string& pod, const std::string& unit,
               const std::string& resource = kH100) {
  return {"team", pod, "compute", resource, unit};
}

// Two GPUs in group 17, one in 18, all of them bound; and who has what.
struct Board {
  NodeFacts facts = Node({Gpu("0000:3b:00.0", 17, "vfio-pci"), Gpu("0000:5e:00.0", 17, "vfio-pci"),
                          Gpu("0000:91:00.0", 18, "vfio-pci")});
  Policy policy = DefaultPolicy();
  Custody custody{.tenancy = Tenancy{}};

  Tenancy& tenancy() { return *custody.tenancy; }
  // "held withheld ready": the states by address.
  std::string States() const {
    std::string states;
    for (const Unit& unit : Units()) {
      states += (states.empty() ? "" : " ") + std::string(Name(unit.state));
    }
    return states;
  }
  std::vector<Unit> Units() const {
    return MakePlan(facts, policy, TestNames(), custody).resources.at(0).units;
  }
};

TEST_CASE("R33: the siblings of a unit that a pod has are withheld until it has it no more",
          "[iommu]") {
  Board board;
  CHECK(board.States() == "ready ready ready");
  board.tenancy().claims.list = {Claim("vm", "0000:3b:00.0")};
  CHECK(board.States() == "held withheld ready");
  const std::vector<Unit> units = board.Units();
  CHECK(units[0].reason == "pod team/vm (container compute)");
  CHECK(units[0].pods == board.tenancy().claims.list);
  CHECK(units[1].reason ==
        "group-split: pod team/vm (container compute) has 0000:3b:00.0, of the same group 17");
  board.tenancy().claims.list.clear();
  CHECK(board.States() == "ready ready ready");
}

TEST_CASE("R33: what Allocate has given a moment ago counts as a pod's", "[iommu]") {
  Board board;
  board.tenancy().grants = {{.resource = kH100, .unit = "0000:5e:00.0", .group = 17}};
  CHECK(board.States() == "withheld held ready");
  CHECK(board.Units()[0].reason ==
        "group-split: a pod has just been given 0000:5e:00.0, of the same group 17");
}

TEST_CASE("R33: a pod may have all units of a group", "[iommu]") {
  Board board;
  board.tenancy().claims.list = {Claim("vm", "0000:3b:00.0"), Claim("vm", "0000:5e:00.0")};
  CHECK(board.States() == "held held ready");
}

TEST_CASE("R33: with sharedGroup unit there is one unit for each group, held as a whole",
          "[iommu]") {
  Board board;
  board.policy.resources[0].shared_group = SharedGroup::kUnit;
  CHECK(board.States() == "ready ready");
  // A claim from before the setting was changed.
  board.tenancy().claims.list = {Claim("vm", "0000:5e:00.0")};
  CHECK(board.States() == "withheld ready");
}

TEST_CASE("R25: a unit that a pod has under another name is not offered under the new one",
          "[iommu]") {
  Board board;
  board.tenancy().claims.list = {Claim("vm", "0000:91:00.0", "nvidia.com/OLD")};
  CHECK(board.States() == "ready ready refused");
  CHECK(board.Units()[2].reason ==
        "held: pod team/vm (container compute) has it as nvidia.com/OLD");
}

TEST_CASE("R51: as long as the kubelet has never told its pods, groups with siblings are withheld",
          "[iommu]") {
  Board board;
  board.tenancy().claims = {.known = false, .why_unknown = "the kubelet does not answer"};
  CHECK(board.States() == "withheld withheld ready");
  CHECK(board.Units()[0].reason ==
        "group-split: which pods have a part of group 17 is not known: the kubelet does not "
        "answer");
  board.custody.tenancy.reset();  // nobody has looked: a plan from files
  CHECK(board.States() == "ready ready ready");
}

TEST_CASE("R30: a group that a process has open and no pod is unhealthy", "[iommu]") {
  Board board;
  board.tenancy().open[18] = {{.pid = 4711, .command = "qemu-system-x86"}};
  CHECK(board.States() == "ready ready unhealthy");
  CHECK(board.Units()[2].reason ==
        "in-use-holder: group 18 is open, and no pod has it: pid 4711 (qemu-system-x86)");
  board.tenancy().claims.list = {Claim("vm", "0000:91:00.0")};
  CHECK(board.States() == "ready ready held");
}

TEST_CASE("R30: fatal PCIe errors make a unit unhealthy until they are taken note of", "[iommu]") {
  Board board;
  PciDevice& gpu = Find(board.facts, "0000:91:00.0");
  gpu.aer_fatal = Fact<uint64_t>(2);
  NoteFatal(board.facts, board.custody.fatal_before);
  CHECK(board.States() == "ready ready ready");  // from before we looked
  gpu.aer_fatal = Fact<uint64_t>(3);
  NoteFatal(board.facts, board.custody.fatal_before);
  CHECK(board.States() == "ready ready unhealthy");
  CHECK(board.Units()[2].reason ==
        "aer-fatal: 1 fatal PCIe errors (AER) at 0000:91:00.0 (10de:2330, driver vfio-pci) or its "
        "root port, since it was looked at first");
  gpu.aer_fatal = Fact<uint64_t>(0);  // another card, or a reset count
  NoteFatal(board.facts, board.custody.fatal_before);
  CHECK(board.States() == "ready ready ready");
}

TEST_CASE("R30: what a root port counts makes the units below it unhealthy, and no others",
          "[iommu]") {
  Board board;
  board.facts = Node({Bridge("0000:00:01.0", 1), Gpu("0000:3b:00.0", 17, "vfio-pci"),
                      Gpu("0000:91:00.0", 18, "vfio-pci")});
  Find(board.facts, "0000:3b:00.0").path = {At("0000:00:01.0")};
  Find(board.facts, "0000:00:01.0").aer_fatal = Fact<uint64_t>(7);
  NoteFatal(board.facts, board.custody.fatal_before);
  CHECK(board.States() == "ready ready");
  Find(board.facts, "0000:00:01.0").aer_fatal = Fact<uint64_t>(8);
  NoteFatal(board.facts, board.custody.fatal_before);
  CHECK(board.States() == "unhealthy ready");
  CHECK_THAT(board.Units()[0].reason, Catch::Contains("1 fatal PCIe errors (AER) at 0000:3b:00.0"));
  // Taken anew, it begins with what is counted now.
  Find(board.facts, "0000:3b:00.0").driver = "nvidia";
  NoteFatal(board.facts, board.custody.fatal_before);
  Find(board.facts, "0000:3b:00.0").driver = "vfio-pci";
  NoteFatal(board.facts, board.custody.fatal_before);
  CHECK(board.States() == "ready ready");
}

TEST_CASE("R30: a unit needs its group's node and the container's, whatever cdevs there are",
          "[iommu]") {
  Board board;
  Find(board.facts, "0000:3b:00.0").vfio_cdev = "vfio0";
  Find(board.facts, "0000:5e:00.0").vfio_cdev = "vfio1";
  board.facts.vfio_nodes.insert({"devices/vfio0", "devices/vfio1"});
  board.facts.iommu_node = true;
  board.facts.vfio_nodes.erase("17");
  CHECK(board.Units()[0].reason == "node-missing: /dev/vfio/17 is not there");
  board.policy.iommufd = true;  // guests go by cdevs
  CHECK(board.Units()[0].state == UnitState::kReady);
  board.facts.vfio_nodes.erase("devices/vfio1");
  CHECK(board.Units()[0].state == UnitState::kUnhealthy);
  board.policy.iommufd = false;
  board.facts.vfio_nodes.insert("17");
  board.facts.vfio_nodes.erase("vfio");
  CHECK(board.Units()[0].reason == "node-missing: /dev/vfio/vfio is not there");
}

TEST_CASE("a kernel without group nodes serves by cdevs and /dev/iommu alone, where configured",
          "[iommu]") {
  Board board;
  board.facts.vfio_nodes = {"devices/vfio0", "devices/vfio1"};
  Find(board.facts, "0000:3b:00.0").vfio_cdev = "vfio0";
  Find(board.facts, "0000:5e:00.0").vfio_cdev = "vfio1";
  board.policy.iommufd = true;
  CHECK(board.Units()[0].state == UnitState::kUnhealthy);
  board.facts.iommu_node = true;
  CHECK(board.Units()[0].state == UnitState::kReady);
  board.policy.iommufd = false;  // nobody would give the guest /dev/iommu
  CHECK(board.Units()[0].state == UnitState::kUnhealthy);
}

// A grant of the unit 0000:3b:00.0, one second after the epoch.
std::vector<Grant> OpenAfter(const Tenancy& tenancy, int looked) {
  const Grant grant{.resource = kH100,
                    .unit = "0000:3b:00.0",
                    .group = 17,
                    .turn = 1,
                    .at = absl::UnixEpoch() + absl::Seconds(1)};
  return OpenGrants({grant}, tenancy, absl::UnixEpoch() + absl::Seconds(looked));
}

TEST_CASE("a grant is settled by the kubelet's list, or ten seconds after nobody has it",
          "[iommu]") {
  Tenancy nobody{.opened = absl::UnixEpoch() + absl::Seconds(11)};
  Tenancy pod{.claims = {.list = {Claim("vm", "0000:3b:00.0")}}};
  CHECK(OpenAfter(nobody, 10).size() == 1);
  CHECK(OpenAfter(nobody, 11).empty());
  CHECK(OpenAfter(pod, 2).empty());
  CHECK(OpenAfter(pod, 0).size() == 1);  // the list is older than the grant
}

TEST_CASE("a grant that no pod has stays while a process has the group open", "[iommu]") {
  Tenancy init;  // the kubelet does not tell of init containers
  init.opened = absl::UnixEpoch() + absl::Seconds(1000);
  init.open[17] = {{.pid = 4711, .command = "init"}};
  CHECK(OpenAfter(init, 1000).size() == 1);
}

TEST_CASE("a grant that no pod has is not settled by a look at processes from before its time",
          "[iommu]") {
  Tenancy nobody{.opened = absl::UnixEpoch() + absl::Seconds(10)};
  CHECK(OpenAfter(nobody, 1000).size() == 1);
}

TEST_CASE("what only the kubelet's checkpoint tells settles no grant", "[iommu]") {
  Tenancy young{.opened = absl::UnixEpoch()};
  young.claims.list = {
      {.pod = "u-1", .container = "compute", .resource = "X", .unit = "0000:3b:00.0"}};
  CHECK(OpenAfter(young, 2).size() == 1);
}

TEST_CASE("a kubelet that does not answer settles nothing", "[iommu]") {
  Tenancy silent{.silent = "no answer"};
  silent.claims.list = {Claim("vm", "0000:3b:00.0")};
  CHECK(OpenAfter(silent, 100).size() == 1);
  Tenancy never{.claims = {.known = false}};
  CHECK(OpenAfter(never, 100).size() == 1);
}

}  // namespace
}  // namespace vfio_agent
