// What `kubevirt` prints for a plan.
#include <catch2/catch.hpp>

#include "agent/kubevirt/kubevirt.h"
#include "iommu/policy/naming.h"
#include "test/support/facts.h"

namespace vfio_agent {
namespace {

constexpr char kName[] = "example.com/thing";

ResourceRule RuleFor(const std::string& name, std::vector<Selector> select) {
  return {.name = name, .select = std::move(select)};
}

Served ServedOf(const NodeFacts& facts, const Policy& policy = DefaultPolicy()) {
  const Plan plan = MakePlan(facts, policy, TestNames(), Asked());
  std::vector<const GroupPlan*> all;
  for (const GroupPlan& group : plan.groups) all.push_back(&group);
  return FindServed(plan, facts, all);
}

TEST_CASE("R54 R55: a model's entry has its own name and its exact vendor and device, upper case",
          "[kubevirt]") {
  const Served served = ServedOf(Node({Gpu("0000:01:00.0", 1), Audio("0000:01:00.1", 1)}));
  REQUIRE(served.resources.size() == 1);
  const ServedResource& resource = served.resources.front();
  CHECK(resource.selectors == std::vector<std::string>{"10DE:2330"});
  CHECK(resource.list == MachineList::kGpus);
  CHECK(resource.groups == std::map<int, std::vector<std::string>>{{1, {"0000:01:00.0"}}});
  CHECK_THAT(KubevirtText(served),
             Catch::Contains("        - pciVendorSelector: \"10DE:2330\"\n"
                             "          resourceName: " +
                             resource.name + "\n          externalResourceProvider: true"));
}

TEST_CASE("R55: two device ids under one name give two entries", "[kubevirt]") {
  Policy policy;
  policy.resources = {RuleFor(kName, {{.vendor = 0x10de, .classes = {"0302"}}})};
  const Served served =
      ServedOf(Node({Function("0000:01:00.0", 1, "nvidia", "10de:2331", 0x030200),
                     Function("0000:02:00.0", 2, "nvidia", "10de:2330", 0x030200),
                     Function("0000:03:00.0", 3, "nvidia", "10de:2330", 0x030200)}),
               policy);
  REQUIRE(served.resources.size() == 1);
  CHECK(served.resources.front().selectors == std::vector<std::string>{"10DE:2330", "10DE:2331"});
  CHECK(served.resources.front().Units() == 3);
  CHECK(KubevirtToJson(served)["permitted_host_devices"]["pciHostDevices"].size() == 2);
}

TEST_CASE("T32: hostDevices need the feature gate, gpus need none", "[kubevirt]") {
  Policy policy;
  policy.resources = {RuleFor(kName, {{.vendor = 0x144d}})};
  const Served disks = ServedOf(Node({Nvme("0000:01:00.0", 1)}), policy);
  CHECK(disks.NeedsGate());
  CHECK_THAT(KubevirtText(disks), Catch::Contains("featureGates:\n        - HostDevices") &&
                                      Catch::Contains("          hostDevices:\n            - name: "
                                                      "device1"));
  CHECK(KubevirtToJson(disks)["feature_gates"] == Json({"HostDevices"}));

  const Served gpus = ServedOf(Node({Gpu("0000:01:00.0", 1)}));
  CHECK_FALSE(gpus.NeedsGate());
  CHECK_THAT(KubevirtText(gpus), !Catch::Contains("featureGates") &&
                                     !Catch::Contains("hostDevices:") &&
                                     Catch::Contains("          gpus:\n            - name: gpu1"));
  CHECK(KubevirtToJson(gpus)["feature_gates"].empty());
}

TEST_CASE("what is refused is named with its reason, and has no entry", "[kubevirt]") {
  const Served served =
      ServedOf(Node({Gpu("0000:01:00.0", 1), Nvme("0000:02:00.0", 1), Gpu("0000:03:00.0", 3)}));
  REQUIRE(served.resources.size() == 1);
  CHECK(served.resources.front().Units() == 1);
  REQUIRE(served.refused.size() == 1);
  CHECK(served.refused.front().unit == "0000:01:00.0");
  CHECK_THAT(KubevirtText(served), Catch::Contains("# Refused on this node") &&
                                       Catch::Contains("#   0000:01:00.0 of ") &&
                                       Catch::Contains(": foreign-member: "));
}

TEST_CASE("where nothing is served only comments are printed, since an empty list forbids all",
          "[kubevirt]") {
  const Served served = ServedOf(NodeWithoutIommu({Gpu("0000:01:00.0", -1)}));
  CHECK(served.resources.empty());
  const std::string text = KubevirtText(served);
  CHECK_THAT(text, Catch::Contains("serves nothing") && Catch::Contains("iommu-off"));
  CHECK(text.find("\n ") == std::string::npos);
  CHECK(text.find("permittedHostDevices:") == std::string::npos);
}

TEST_CASE("R42: a device whose domain has more than four digits is not offered to KubeVirt",
          "[kubevirt]") {
  const Served served = ServedOf(Node({Gpu("10000:01:00.0", 1)}));
  CHECK(served.resources.empty());
  REQUIRE(served.refused.size() == 1);
  CHECK_THAT(served.refused.front().reason, Catch::Contains("address-too-wide"));
}

TEST_CASE("R43: companions are bound, and are no units", "[kubevirt]") {
  const Served served = ServedOf(Node({Gpu("0000:01:00.0", 1), Audio("0000:01:00.1", 1)}));
  REQUIRE(served.resources.size() == 1);
  CHECK(served.resources.front().Units() == 1);
}

TEST_CASE("units of one group are named together: they are one machine's at a time", "[kubevirt]") {
  const Served served = ServedOf(Node({Gpu("0000:01:00.0", 1), Gpu("0000:02:00.0", 1)}));
  CHECK_THAT(KubevirtText(served), Catch::Contains("# group 1 is one machine's at a time: "
                                                   "0000:01:00.0, 0000:02:00.0"));
}

// Units "a" to "d", of which "d" is refused.
Resource WithSets(std::vector<std::vector<std::string>> sets) {
  Resource resource{.name = kName, .partitions = std::move(sets)};
  for (const char* id : {"a", "b", "c", "d"}) {
    resource.units.push_back({.id = id, .group = 1, .state = UnitState::kReady});
  }
  resource.units.back().state = UnitState::kRefused;
  return resource;
}

TEST_CASE("how many units a machine can have is said where not every number is given",
          "[kubevirt]") {
  CHECK(SizesOf(WithSets({})).empty());
  CHECK(SizesOf(WithSets({{"a", "b", "c"}, {"a", "b"}, {"b", "c"}})) ==
        std::vector<size_t>{1, 2, 3});
  // What has a refused unit cannot be had; one alone always can.
  CHECK(SizesOf(WithSets({{"a", "b", "c", "d"}, {"c", "d"}})) == std::vector<size_t>{1});
  Resource resource = WithSets({});
  resource.partitions_fault = "it names 9";
  CHECK(SizesOf(resource) == std::vector<size_t>{1});
  // Of bundles a machine can have several, whole ones only.
  resource = WithSets({{"a", "b"}, {"c"}, {"d"}});
  resource.only_partitions = true;
  CHECK(SizesOf(resource) == std::vector<size_t>{1, 2, 3});
  resource.partitions = {{"a", "b"}};
  CHECK(SizesOf(resource) == std::vector<size_t>{2});
}

TEST_CASE("numbers of units that a machine can have stand above its items, and in the document",
          "[kubevirt]") {
  Served served{
      .resources = {{.name = kName, .groups = {{1, {"a"}}, {2, {"b"}}}, .sizes = {1, 2}}}};
  CHECK_THAT(KubevirtText(served),
             Catch::Contains("            # a machine can have 1 or 2 of these\n"));
  CHECK(KubevirtToJson(served)["resources"][0]["sizes"] == Json({1, 2}));
  served.resources[0].sizes = {2};
  served.resources[0].together = 2;
  CHECK_THAT(KubevirtText(served),
             Catch::Contains("            # a bundle, whole: a machine can have 2 of these\n"));
  served.resources[0].sizes.clear();
  CHECK_THAT(KubevirtText(served), !Catch::Contains("a machine can have"));
  CHECK_FALSE(KubevirtToJson(served)["resources"][0].contains("sizes"));
}

TEST_CASE("a reason with line breaks stays a comment", "[kubevirt]") {
  const Served served{.refused = {{.resource = "a/b", .unit = "u", .reason = "x\n- y: \x1b[31m"}}};
  CHECK_THAT(KubevirtText(served), Catch::Contains("a/b: x?- y: ?[31m\n"));
  CHECK(Printable(std::string(1000, 'x')).size() == 402);
}

TEST_CASE("what machines ask for by claims is no resource of KubeVirt's", "[kubevirt]") {
  Policy policy = DefaultPolicy();
  policy.resources[0].serve = Serve::kDra;
  const Served served = ServedOf(Node({Gpu("0000:01:00.0", 1)}), policy);
  CHECK(served.resources.empty());
  CHECK(served.refused.empty());
  REQUIRE(served.by_claims.size() == 1);
  const auto& [name, units] = *served.by_claims.begin();
  CHECK(units == 1);
  CHECK_THAT(KubevirtText(served), Catch::Contains("# " + name + ": 1 unit by claims") &&
                                       !Catch::Contains("serves nothing"));
  CHECK(KubevirtToJson(served)["by_claims"][0]["name"] == name);
}

}  // namespace
}  // namespace vfio_agent
