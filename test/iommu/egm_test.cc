#include "iommu/bundle/egm.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_join.h"
#include "test/support/facts.h"

namespace vfio_agent {
namespace {

// Four GPUs of a Grace board, two for each region.
struct Grace {
  NodeFacts facts = [] {
    std::vector<PciDevice> gpus;
    int group = 10;
    for (const char* address : {"0008:01:00.0", "0009:01:00.0", "0018:01:00.0", "0019:01:00.0"}) {
      gpus.push_back(Function(address, group++, "nvgrace_gpu_vfio_pci", "10de:2941", 0x030200));
      gpus.back().vfio_cdev = "vfio0";
    }
    NodeFacts node = Node(gpus);
    node.egm = {{"egm4", {At("0008:01:00.0"), At("0009:01:00.0")}, true, ""},
                {"egm5", {At("0018:01:00.0"), At("0019:01:00.0")}, true, ""}};
    return node;
  }();
  ResourceRule rule{.name = "nvidia.com/gb200", .select = {{.vendor = 0x10de}}};

  Plan Planned() const { return MakePlan(facts, {.resources = {rule}}, TestNames(), {}); }
};

TEST_CASE("a region is for who has all of its GPUs", "[iommu]") {
  const Plan plan = Grace().Planned();
  REQUIRE(plan.egm.size() == 2);
  const EgmShare& share = plan.egm[0];
  CHECK(share.node == "/dev/egm4");
  CHECK(share.resource == "nvidia.com/gb200");
  CHECK(share.units == std::vector<std::string>{"0008:01:00.0", "0009:01:00.0"});
  CHECK(share.gpus == std::vector<PciAddress>{At("0008:01:00.0"), At("0009:01:00.0")});
  CHECK(Spell(share) ==
        "/dev/egm4 (Extended GPU Memory of 0008:01:00.0 0009:01:00.0) goes to a pod that has all "
        "of them: 2 of nvidia.com/gb200");
}

TEST_CASE("a region whose GPUs are not all given to guests is nobody's, and says why", "[iommu]") {
  Grace grace;
  std::string why;
  SECTION("one is not selected") {
    grace.rule.exclude = {{.address = At("0009:01:00.0")}};
    why = "0009:01:00.0 is given to no guest";
  }
  SECTION("one is refused") {
    grace.facts.devices.push_back(Nvme("0009:02:00.0", 11));
    std::ranges::sort(grace.facts.devices, {}, &PciDevice::address);
    why = "0009:01:00.0 is refused";
  }
  SECTION("one is not there at all") {
    grace.facts.egm[0].gpus.push_back(At("0009:01:00.1"));
    why = "0009:01:00.1 is given to no guest";
  }
  SECTION("its GPUs are not known") {
    grace.facts.egm[0].gpus.clear();
    grace.facts.egm[0].fault = "the kernel names no GPU of it";
    why = "the kernel names no GPU of it";
  }
  SECTION("no node") {
    grace.facts.egm[0].has_node = false;
    why = "the node is not there";
  }
  SECTION("no set of the table has them all") {
    grace.rule.partitions = {{"0", "2"}, {"1", "3"}};
    why = "no set of resources[].partitions has all of its GPUs";
  }
  SECTION("the table of sets is void") {
    grace.rule.partitions = {{"0", "9"}};
    why = "no set of resources[].partitions has all of its GPUs";
  }
  SECTION("claims ask for them") {
    grace.rule.serve = Serve::kDra;
    why = "resource claims get no such node";
  }
  const EgmShare share = grace.Planned().egm.at(0);
  CHECK(share.resource.empty());
  CHECK(share.units.empty());
  CHECK(share.why == why);
  CHECK_THAT(Spell(share), Catch::StartsWith("/dev/egm4 (Extended GPU Memory") &&
                               Catch::EndsWith(" goes to nobody: " + why));
}

TEST_CASE("a region whose GPUs are of two resources is nobody's", "[iommu]") {
  Grace grace;
  grace.rule.select = {{.address = At("0008:01:00.0")}};
  const ResourceRule other{.name = "nvidia.com/other", .select = {{.vendor = 0x10de}}};
  const Plan plan = MakePlan(grace.facts, {.resources = {grace.rule, other}}, TestNames(), {});
  CHECK(plan.egm.at(0).why ==
        "0008:01:00.0 is of nvidia.com/gb200 and 0009:01:00.0 of nvidia.com/other");
  CHECK(plan.egm.at(1).resource == "nvidia.com/other");
}

TEST_CASE("while a GPU is still to be bound no region goes to anybody: it may have one more",
          "[iommu]") {
  Grace grace;
  PciDevice& second = grace.facts.devices[1];
  second.driver = "nvidia";
  second.vfio_cdev.reset();
  grace.facts.egm[0].gpus = {At("0008:01:00.0")};
  std::vector<ResourceRule> rules = {grace.rule};
  SECTION("of the same resource") {}
  SECTION("of another resource of the same model") {
    rules[0].select = {{.address = At("0008:01:00.0")}};
    rules.push_back({.name = "nvidia.com/other", .select = {{.vendor = 0x10de}}});
  }
  const auto shares = [&] {
    return MakePlan(grace.facts, {.resources = rules}, TestNames(), {}).egm;
  };
  for (const EgmShare& share : shares()) {
    CHECK(share.resource.empty());
    CHECK(share.why == "0009:01:00.0 is still to be bound, and the kernel may list it then");
  }
  second.driver = "nvgrace_gpu_vfio_pci";
  second.vfio_cdev = "vfio0";
  for (const EgmShare& share : shares()) CHECK(!share.resource.empty());
}

TEST_CASE("a set of the table that has all GPUs of a region will do, and so will a bundle",
          "[iommu]") {
  Grace grace;
  SECTION("a set") { grace.rule.partitions = {{"0", "1", "2", "3"}, {"0", "2"}}; }
  SECTION("a bundle, counted by device") {
    grace.rule.bundle = {{.select = grace.rule.select, .count = 2}};
    grace.rule.bundle_by_device = true;
  }
  CHECK(grace.Planned().egm.at(0).units.size() == 2);
  CHECK(grace.Planned().egm.at(1).units.size() == 2);
}

TEST_CASE("of a bundle as one unit a region needs that unit alone", "[iommu]") {
  Grace grace;
  grace.rule.bundle = {{.select = grace.rule.select, .count = 4}};
  const Plan plan = grace.Planned();
  CHECK(plan.egm.at(0).units == std::vector<std::string>{"0008:01:00.0"});
  CHECK(plan.egm.at(1).units == std::vector<std::string>{"0008:01:00.0"});
}

}  // namespace
}  // namespace vfio_agent
