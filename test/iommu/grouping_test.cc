// The kernel's grouping rule, computed from the hardware.
#include <catch2/catch.hpp>

#include "iommu/plan/plan.h"
#include "test/iommu/hardware.h"
#include "test/support/facts.h"

namespace vfio_agent {
namespace {

// A card of two functions below `port`.
std::vector<Part> CardBelow(const Part& port, const Fact<Acs>& functions) {
  return {
      port,
      {.address = "0000:01:00.0", .acs = functions, .parent = port.address, .multifunction = true},
      {.address = "0000:01:00.1", .acs = functions, .parent = port.address, .multifunction = true}};
}

std::string Sets(const std::vector<Part>& parts) {
  return ComputedSets(ComputeGrouping(MakeHardware(parts)));
}

TEST_CASE("below an isolating port a card's functions are together, the port is alone", "[iommu]") {
  CHECK(Sets(CardBelow({.address = "0000:00:01.0", .type = RootPort(), .acs = Isolating()}, {})) ==
        "0000:00:01.0\n0000:01:00.0 0000:01:00.1\n");
}

TEST_CASE("functions that isolate themselves are apart", "[iommu]") {
  CHECK(Sets(CardBelow({.address = "0000:00:01.0", .type = RootPort(), .acs = Isolating()},
                       Isolating())) == "0000:00:01.0\n0000:01:00.0\n0000:01:00.1\n");
}

TEST_CASE("a function that does not isolate joins only functions that do not either", "[iommu]") {
  CHECK(Sets({{.address = "0000:00:1c.0", .acs = Isolating(), .multifunction = true},
              {.address = "0000:00:1c.1", .multifunction = true},
              {.address = "0000:00:1c.2", .multifunction = true},
              {.address = "0000:00:1c.3", .acs = Isolating(), .multifunction = true},
              {.address = "0000:00:1d.0", .multifunction = true}}) ==
        "0000:00:1c.0\n0000:00:1c.1 0000:00:1c.2\n0000:00:1c.3\n0000:00:1d.0\n");
}

TEST_CASE("a port that does not isolate takes what is below it into its group", "[iommu]") {
  const auto acs = GENERATE(Fact<Acs>::Absent(), SwitchedOff());
  const NodeFacts facts = MakeHardware(
      CardBelow({.address = "0000:00:01.0", .type = RootPort(), .acs = acs}, Isolating()));
  const Grouping grouping = ComputeGrouping(facts);
  CHECK(ComputedSets(grouping) == "0000:00:01.0 0000:01:00.0 0000:01:00.1\n");
  REQUIRE(grouping.merges.size() == 2);
  CHECK(grouping.merges[0] == Merge{.device = At("0000:01:00.0"),
                                    .with = At("0000:00:01.0"),
                                    .kind = Merge::Kind::kPort,
                                    .culprit = At("0000:00:01.0"),
                                    .acs = CheckAcs(*FindDevice(facts, At("0000:00:01.0")))});
}

TEST_CASE("ports of one slot without ACS merge all that is below them", "[iommu]") {
  CHECK(Sets({{.address = "0000:00:02.0", .type = RootPort(), .multifunction = true},
              {.address = "0000:00:02.1", .type = RootPort(), .multifunction = true},
              {.address = "0000:01:00.0", .parent = "0000:00:02.0"},
              {.address = "0000:02:00.0", .parent = "0000:00:02.1"}}) ==
        "0000:00:02.0 0000:00:02.1 0000:01:00.0 0000:02:00.0\n");
}

std::vector<Part> Switch(const Fact<Acs>& root_port, const Fact<Acs>& downstream) {
  return {{.address = "0000:00:01.0", .type = RootPort(), .acs = root_port},
          {.address = "0000:01:00.0", .type = Upstream(), .parent = "0000:00:01.0"},
          {.address = "0000:02:00.0",
           .type = Downstream(),
           .acs = downstream,
           .parent = "0000:01:00.0"},
          {.address = "0000:02:01.0",
           .type = Downstream(),
           .acs = downstream,
           .parent = "0000:01:00.0"},
          {.address = "0000:03:00.0", .parent = "0000:02:00.0"},
          {.address = "0000:04:00.0", .parent = "0000:02:01.0"}};
}

TEST_CASE("a switch whose ports isolate keeps its devices apart", "[iommu]") {
  CHECK(Sets(Switch(Isolating(), Isolating())) ==
        "0000:00:01.0\n0000:01:00.0\n0000:02:00.0\n0000:02:01.0\n0000:03:00.0\n0000:04:00.0\n");
}

TEST_CASE("a switch port without ACS keeps only its own device", "[iommu]") {
  CHECK(Sets(Switch(Isolating(), {})) ==
        "0000:00:01.0\n0000:01:00.0\n0000:02:00.0 0000:03:00.0\n0000:02:01.0 0000:04:00.0\n");
}

TEST_CASE("a root port without ACS merges everything below an isolating switch", "[iommu]") {
  const NodeFacts facts = MakeHardware(Switch({}, Isolating()));
  const Grouping grouping = ComputeGrouping(facts);
  CHECK(ComputedSets(grouping) ==
        "0000:00:01.0 0000:01:00.0 0000:02:00.0 0000:02:01.0 0000:03:00.0 0000:04:00.0\n");
  for (const Merge& merge : grouping.merges) {
    CAPTURE(merge.device.ToString());
    CHECK(merge.culprit == At("0000:00:01.0"));  // although it joins the port right above
  }
}

TEST_CASE("devices behind a PCIe-to-PCI bridge carry its id and share its group", "[iommu]") {
  const NodeFacts facts =
      MakeHardware({{.address = "0000:00:01.0", .type = RootPort(), .acs = Isolating()},
                    {.address = "0000:05:00.0", .type = PcieToPci(), .parent = "0000:00:01.0"},
                    {.address = "0000:06:01.0", .type = Conventional(), .parent = "0000:05:00.0"},
                    {.address = "0000:06:02.0", .type = Conventional(), .parent = "0000:05:00.0"}});
  const Grouping grouping = ComputeGrouping(facts);
  CHECK(ComputedSets(grouping) == "0000:00:01.0\n0000:05:00.0 0000:06:01.0 0000:06:02.0\n");
  REQUIRE(grouping.merges.size() == 2);
  CHECK(grouping.merges[1].kind == Merge::Kind::kAlias);
  CHECK(grouping.merges[1].culprit == At("0000:05:00.0"));
}

TEST_CASE("conventional devices of the root bus merge only with functions of their slot",
          "[iommu]") {
  CHECK(Sets({{.address = "0000:00:1e.0", .type = Conventional()},
              {.address = "0000:00:1f.0", .type = Conventional(), .multifunction = true},
              {.address = "0000:00:1f.2", .type = Conventional(), .multifunction = true},
              {.address = "0000:00:1f.3", .type = Conventional(), .multifunction = true}}) ==
        "0000:00:1e.0\n0000:00:1f.0 0000:00:1f.2 0000:00:1f.3\n");
}

TEST_CASE("unknown ACS on the way leaves the place unknown and merges nothing", "[iommu]") {
  const Fact<Acs> unread = Fact<Acs>::Unknown(EACCES);
  const Grouping above = ComputeGrouping(
      MakeHardware(CardBelow({.address = "0000:00:01.0", .type = RootPort(), .acs = unread}, {})));
  CHECK(above.merges.empty());
  CHECK(above.unknown == std::vector<PciAddress>{At("0000:01:00.0"), At("0000:01:00.1")});
  const Grouping beside = ComputeGrouping(MakeHardware(
      CardBelow({.address = "0000:00:01.0", .type = RootPort(), .acs = Isolating()}, unread)));
  CHECK(beside.merges.empty());
  CHECK(beside.unknown == std::vector<PciAddress>{At("0000:01:00.0"), At("0000:01:00.1")});
}

TEST_CASE("a bridge of unknown type leaves what is below it unknown", "[iommu]") {
  const Grouping grouping = ComputeGrouping(MakeHardware(CardBelow(
      {.address = "0000:00:01.0", .type = Fact<PcieType>::Unknown(EACCES)}, Isolating())));
  CHECK(grouping.merges.empty());
  CHECK(grouping.unknown.size() == 2);
}

TEST_CASE("a device without a place in the tree is unknown", "[iommu]") {
  const Grouping grouping = ComputeGrouping(Node({Gpu("0000:01:00.0", 1)}));
  CHECK(grouping.unknown == std::vector<PciAddress>{At("0000:01:00.0")});
}

// The topology and the groups that Linux 6.1 made of it in a virtual machine.
std::vector<Part> Q35() {
  std::vector<Part> parts = {{.address = "0000:00:00.0", .type = Conventional(), .group = 0}};
  const auto add = [&parts](Part part) { parts.push_back(std::move(part)); };
  add({.address = "0000:00:02.0",
       .type = RootPort(),
       .acs = Isolating(),
       .group = 1,
       .multifunction = true});
  add({.address = "0000:00:02.1",
       .type = RootPort(),
       .acs = Isolating(),
       .group = 2,
       .multifunction = true});
  add({.address = "0000:00:03.0", .type = RootPort(), .group = 3, .multifunction = true});
  add({.address = "0000:00:03.1", .type = RootPort(), .group = 3, .multifunction = true});
  add({.address = "0000:00:04.0", .type = RootPort(), .acs = Isolating(), .group = 4});
  add({.address = "0000:00:05.0", .type = RootPort(), .acs = Isolating(), .group = 5});
  add({.address = "0000:00:0b.0", .type = Conventional(), .group = 11});
  add({.address = "0000:00:1e.0", .type = Conventional(), .group = 12});
  for (const char* address : {"0000:00:1f.0", "0000:00:1f.2", "0000:00:1f.3"}) {
    add({.address = address, .type = Conventional(), .group = 13, .multifunction = true});
  }
  add({.address = "0000:01:00.0", .parent = "0000:00:02.0", .group = 14});
  add({.address = "0000:02:00.0", .parent = "0000:00:02.1", .group = 15, .multifunction = true});
  add({.address = "0000:02:00.1",
       .type = Conventional(),
       .parent = "0000:00:02.1",
       .group = 15,
       .multifunction = true});
  add({.address = "0000:03:00.0", .parent = "0000:00:03.0", .group = 3});
  add({.address = "0000:04:00.0", .parent = "0000:00:03.1", .group = 3});
  add({.address = "0000:05:00.0", .type = Upstream(), .parent = "0000:00:04.0", .group = 16});
  add({.address = "0000:06:00.0", .type = Downstream(), .parent = "0000:05:00.0", .group = 17});
  add({.address = "0000:06:01.0", .type = Downstream(), .parent = "0000:05:00.0", .group = 18});
  add({.address = "0000:07:00.0", .parent = "0000:06:00.0", .group = 17});
  add({.address = "0000:08:00.0", .parent = "0000:06:01.0", .group = 18});
  add({.address = "0000:09:00.0", .type = PcieToPci(), .parent = "0000:00:05.0", .group = 19});
  add({.address = "0000:0a:01.0", .type = Conventional(), .parent = "0000:09:00.0", .group = 19});
  add({.address = "0000:0a:02.0", .type = Conventional(), .parent = "0000:09:00.0", .group = 19});
  add({.address = "0000:40:01.0", .type = RootPort(), .acs = Isolating(), .group = 26});
  add({.address = "0000:42:00.0", .parent = "0000:40:01.0", .group = 29, .multifunction = true});
  add({.address = "0000:42:00.1",
       .type = Conventional(),
       .parent = "0000:40:01.0",
       .group = 29,
       .multifunction = true});
  return parts;
}

TEST_CASE("the computed groups are those that a real kernel made", "[iommu]") {
  const NodeFacts facts = MakeHardware(Q35());
  const Grouping grouping = ComputeGrouping(facts);
  CHECK(ComputedSets(grouping) == KernelSets(facts));
  CHECK(grouping.unknown.empty());
  CHECK(FindFinerGroups(facts, grouping).empty());
}

// The GPU's two functions, apart although they cannot be.
NodeFacts SplitCard() {
  NodeFacts facts = MakeHardware(
      CardBelow({.address = "0000:00:01.0", .type = RootPort(), .acs = Isolating()}, {}));
  for (PciDevice& device : facts.devices) {
    device.group = 10 + device.address.function;
    facts.groups.try_emplace(*device.group);
  }
  Find(facts, "0000:00:01.0").group = 1;
  facts.groups.try_emplace(1);
  return facts;
}

TEST_CASE("groups that are finer than the hardware allows are found", "[iommu]") {
  NodeFacts facts = SplitCard();
  const std::vector<Merge> finer = FindFinerGroups(facts, ComputeGrouping(facts));
  REQUIRE(finer.size() == 1);
  CHECK(finer[0].device == At("0000:01:00.1"));
  CHECK(finer[0].with == At("0000:01:00.0"));
  CHECK(finer[0].kind == Merge::Kind::kFunction);
  SECTION("but not where one of the two has no group") {
    Find(facts, "0000:01:00.0").group.reset();
    CHECK(FindFinerGroups(facts, ComputeGrouping(facts)).empty());
  }
  SECTION("and not in noiommu mode, where every device gets a group of its own") {
    facts.groups.at(11).noiommu = true;
    CHECK(FindFinerGroups(facts, ComputeGrouping(facts)).empty());
  }
}

TEST_CASE("acs-override: finer groups are a warning and hinder nothing", "[iommu]") {
  NodeFacts facts = SplitCard();
  const bool asked = GENERATE(true, false);
  CAPTURE(asked);
  facts.iommu.acs_override_parameter = asked;
  const Plan plan = DefaultPlan(facts);
  CHECK(plan.acs_override);
  CHECK(plan.refusals.empty());
  CHECK(Codes(plan.warnings) == "acs-override 0000:01:00.1");
  CHECK(GroupOf(plan, 11).warnings == plan.warnings);
  const std::string& text = plan.warnings.at(0).text;
  CHECK(text.find("0000:01:00.1 (group 11) apart from 0000:01:00.0 (group 10), but 0000:01:00.1 "
                  "no ACS capability") != std::string::npos);
  CHECK((text.find("pcie_acs_override is on the kernel command line") != std::string::npos) ==
        asked);
}

TEST_CASE("groups as the hardware has them give no acs-override", "[iommu]") {
  NodeFacts facts = MakeHardware(Q35());
  CHECK_FALSE(DefaultPlan(facts).acs_override);
  facts.iommu.acs_override_parameter = true;
  CHECK(DefaultPlan(facts).acs_override);
  CHECK(DefaultPlan(facts).warnings.empty());
}

}  // namespace
}  // namespace vfio_agent
