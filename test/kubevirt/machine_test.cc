// One machine beside what a node serves.
#include "agent/kubevirt/machine.h"

#include <catch2/catch.hpp>

namespace vfio_agent {
namespace {

constexpr char kName[] = "nvidia.com/GH100_H100";
constexpr MachineList kGpus = MachineList::kGpus;
constexpr MachineList kHost = MachineList::kHostDevices;

// Two units in a group of their own each, and two that share one.
Served NodeOf() {
  return {.resources =
              {{.name = kName, .selectors = {"10DE:2330"}, .groups = {{1, {"a"}}, {2, {"b"}}}},
               {.name = "nvidia.com/PAIR", .selectors = {"10DE:1E07"}, .groups = {{3, {"c", "d"}}}},
               {.name = "nvidia.com/SETS",
                .groups = {{4, {"e"}}, {5, {"f"}}, {6, {"g"}}, {7, {"h"}}},
                .sizes = {1, 2, 4}},
               {.name = "nvidia.com/BOARD", .groups = {{8, {"i"}}}, .first_only = true}},
          .refused = {{.resource = "nvidia.com/R", .unit = "u", .reason = "iommu-off: x"}},
          .by_claims = {{"nvidia.com/CLAIMED", 2}}};
}

std::string CodesOf(const std::vector<std::pair<MachineList, std::string>>& devices,
                    const KubevirtConfiguration* configuration = nullptr) {
  KubevirtMachine machine;
  for (const auto& [list, name] : devices) {
    machine.devices.push_back({.list = list, .resource = name, .where = "f.yaml:1:1"});
  }
  std::string codes;
  for (const Difference& finding : CheckMachine(NodeOf(), machine, configuration)) {
    codes +=
        (codes.empty() ? "" : " ") + (finding.hinders ? finding.code : "(" + finding.code + ")");
  }
  return codes;
}

TEST_CASE("a machine that asks for what the node has would start", "[kubevirt]") {
  CHECK(CodesOf({}).empty());
  CHECK(
      CodesOf(
          {{kGpus, kName}, {kGpus, kName}, {kGpus, "nvidia.com/PAIR"}, {kGpus, "nvidia.com/PAIR"}})
          .empty());
}

TEST_CASE("a machine that asks for more than the node has is told", "[kubevirt]") {
  CHECK(CodesOf({{kGpus, kName}, {kGpus, kName}, {kGpus, kName}}) == "too-many");
}

TEST_CASE("a name that the node does not serve is told, with what is known of it", "[kubevirt]") {
  CHECK(CodesOf({{kGpus, "nvidia.com/NONE"}}) == "unknown-name");
  CHECK(CodesOf({{kGpus, "nvidia.com/gh100_h100"}}) == "name-differs");
  CHECK(CodesOf({{kGpus, "nvidia.com/R"}}) == "refused-here");
  CHECK(CodesOf({{kGpus, "nvidia.com/CLAIMED"}}) == "by-claims");
}

TEST_CASE("T15: a resource under gpus and under hostDevices would give one device twice",
          "[kubevirt]") {
  CHECK(CodesOf({{kGpus, kName}, {kHost, kName}}) == "in-both-lists (gate-missing)");
}

TEST_CASE("T32: hostDevices of a machine need the gate where the file has KubeVirt's gates",
          "[kubevirt]") {
  KubevirtConfiguration configuration;
  CHECK(CodesOf({{kHost, kName}}) == "(gate-missing)");
  CHECK(CodesOf({{kHost, kName}}, &configuration) == "gate-missing");
  CHECK(CodesOf({{kGpus, kName}}, &configuration).empty());
  configuration.feature_gates.insert("HostDevices");
  CHECK(CodesOf({{kHost, kName}}, &configuration).empty());
}

TEST_CASE("a machine that leaves part of a group to nobody is told so", "[kubevirt]") {
  CHECK(CodesOf({{kGpus, "nvidia.com/PAIR"}}) == "(group-split)");
}

TEST_CASE("a machine with a number of devices that is no set is told the numbers that are",
          "[kubevirt]") {
  const auto of = [](size_t count) {
    return CodesOf(std::vector(count, std::pair(kGpus, std::string("nvidia.com/SETS"))));
  };
  CHECK(of(1).empty());
  CHECK(of(2).empty());
  CHECK(of(3) == "no-such-size");
  CHECK(of(4).empty());
  CHECK(of(5) == "too-many");
  KubevirtMachine machine;
  machine.devices.assign(3, {.resource = "nvidia.com/SETS"});
  const Difference finding = CheckMachine(NodeOf(), machine, nullptr).at(0);
  CHECK(finding.text == "asks for 3 of nvidia.com/SETS, of which a machine can have 1, 2 or 4");
  CHECK_THAT(finding.remedy, Catch::StartsWith("ask for 1, 2 or 4;"));
}

TEST_CASE("a machine with a bundle that is one unit is told that it gets the first device",
          "[kubevirt]") {
  CHECK(CodesOf({{kGpus, "nvidia.com/BOARD"}}) == "(first-only)");
}

TEST_CASE("a device without a name is an error, one of a resource claim is not this agent's",
          "[kubevirt]") {
  const auto findings =
      CheckMachine(NodeOf(), {.devices = {{.claimed = true}, {.claimed = false}}}, nullptr);
  REQUIRE(findings.size() == 2);
  CHECK(findings[0].code == "claimed");
  CHECK_FALSE(findings[0].hinders);
  CHECK(findings[1].code == "no-name");
  CHECK(findings[1].hinders);
}

}  // namespace
}  // namespace vfio_agent
