// What a new configuration changes, from two plans of the same facts.
#include "agent/daemon/plan_change.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_format.h"
#include "agent/config/config.h"
#include "agent/daemon/report.h"
#include "test/support/facts.h"

namespace vfio_agent {
namespace {

constexpr char kAll[] = "resources: [{select: [{vendor: \"10de\"}]}]\n";
constexpr char kNone[] = "mode: container\n";

// One card with nvidia and one bound, each in a group of its own.
NodeFacts TwoCards() {
  return Node({Gpu("0000:17:00.0", 17), Gpu("0000:65:00.0", 65, "vfio-pci")});
}

// A line for each change, from the one configuration to the other.
std::vector<std::string> Changes(const NodeFacts& facts, const std::string& from,
                                 const std::string& to) {
  const auto plan = [&facts](const std::string& text) {
    const absl::StatusOr<Config> config = ParseConfig(text, "config.yaml");
    REQUIRE(config.ok());
    return MakePlan(facts, config->policy, TestNames(), Asked());
  };
  std::vector<std::string> lines;
  for (const PlanChange& change : ComparePlans(plan(from), plan(to))) {
    lines.push_back(ToText(Foreseen(change)));
  }
  return lines;
}

TEST_CASE("the same configuration changes nothing", "[config]") {
  CHECK(Changes(TwoCards(), kAll, kAll).empty());
  CHECK(Changes(TwoCards(), kNone, kNone).empty());
}

TEST_CASE("groups that are selected now will be bound, or served where they are bound already",
          "[config]") {
  const std::vector<std::string> lines = Changes(TwoCards(), kNone, kAll);
  REQUIRE(lines.size() == 2);
  CHECK_THAT(lines[0], Catch::Contains("event=config_plan group=17 members=0000:17:00.0 "
                                       "change=\"will be bound\" resource=nvidia.com/"));
  CHECK_THAT(lines[1], Catch::Contains("group=65") && Catch::Contains("change=\"will be served\""));
}

TEST_CASE("groups that are selected no more are no longer served, and the line says what stays",
          "[config]") {
  const std::vector<std::string> lines = Changes(TwoCards(), kAll, kNone);
  REQUIRE(lines.size() == 2);
  for (const std::string& line : lines) {
    CHECK_THAT(line, Catch::Contains("change=\"no longer served\" before=nvidia.com/") &&
                         Catch::Contains("devices stay bound until `vfio-agent release`") &&
                         !Catch::Contains("resource="));
  }
}

TEST_CASE("another name is told with the one before", "[config]") {
  const std::vector<std::string> lines =
      Changes(TwoCards(), "resources: [{name: a.com/x, select: [{vendor: \"10de\"}]}]\n",
              "resources: [{name: a.com/y, select: [{vendor: \"10de\"}]}]\n");
  REQUIRE(lines.size() == 2);
  CHECK_THAT(lines[0],
             Catch::Contains("change=renamed resource=a.com/y before=a.com/x") &&
                 Catch::Contains("pods and machines that name the old resource find none"));
}

TEST_CASE("a group that the new configuration refuses is told with its code and remedy",
          "[config]") {
  const NodeFacts facts = Node({Gpu("0000:17:00.0", 17), Nvme("0000:18:00.0", 17)});
  const std::string allowed =
      "resources: [{select: [{vendor: \"10de\"}], allowMembers: [{address: \"0000:18:00.0\"}]}]\n";
  const std::vector<std::string> lines = Changes(facts, allowed, kAll);
  REQUIRE(lines.size() == 1);
  CHECK_THAT(lines[0], Catch::Contains("change=\"no longer served\"") &&
                           Catch::Contains("code=foreign-member") && Catch::Contains("remedy="));
  const std::vector<std::string> fresh = Changes(facts, kNone, kAll);
  REQUIRE(fresh.size() == 1);
  CHECK_THAT(fresh[0], Catch::Contains("change=refused") && Catch::Contains("code=foreign-member"));
  const std::vector<std::string> gone = Changes(facts, kAll, kNone);
  REQUIRE(gone.size() == 1);
  CHECK_THAT(gone[0], Catch::Contains("change=\"no longer selected\""));
}

TEST_CASE("one unit instead of two is a change of the group", "[config]") {
  const NodeFacts facts =
      Node({Gpu("0000:17:00.0", 17, "vfio-pci"), Gpu("0000:18:00.0", 17, "vfio-pci")});
  const std::vector<std::string> lines =
      Changes(facts, kAll, "resources: [{select: [{vendor: \"10de\"}], sharedGroup: unit}]\n");
  REQUIRE(lines.size() == 1);
  CHECK_THAT(lines[0], Catch::Contains("change=\"other units\""));
}

// A physical function with as many VFs as are given, all of them bound.
NodeFacts Physical(int vfs) {
  PciDevice pf = Gpu("0000:0b:00.0", 20);
  pf.sriov_total_vfs = Fact<int>(8);
  std::vector<PciDevice> devices;
  for (int i = 1; i <= vfs; ++i) {
    const std::string address = absl::StrFormat("0000:0b:00.%d", i);
    pf.virtfns.push_back(At(address));
    devices.push_back(Vf(address, 20 + i, "0000:0b:00.0", "vfio-pci"));
  }
  devices.push_back(pf);
  return Node(devices);
}

std::string WithVfs(const std::string& sriov) {
  return "resources: [{name: a.b/vf, select: [{vendor: \"10de\"}], sriov: " + sriov + "}]\n";
}

TEST_CASE("another number of VFs: those that are there stay in service, and how to change it",
          "[config]") {
  const std::vector<std::string> lines =
      Changes(Physical(2), WithVfs("{vfs: 2}"), WithVfs("{vfs: 4}"));
  REQUIRE(lines.size() == 1);
  CHECK_THAT(lines[0], Catch::Contains("group=20 members=0000:0b:00.0 "
                                       "change=\"virtual functions stay\"") &&
                           Catch::Contains("code=pf-has-vfs") && Catch::Contains("to have 4: ") &&
                           Catch::Contains("stay in service, until they are released") &&
                           !Catch::Contains("no longer served"));
  CHECK(Changes(Physical(2), WithVfs("{vfs: 2}"), WithVfs("{}")).empty());
  CHECK(Changes(Physical(2), WithVfs("{vfs: 3}"), WithVfs("{vfs: 4}")).empty());  // as before
}

TEST_CASE("VFs that will be made are told as that, and what is left of them", "[config]") {
  const std::vector<std::string> made = Changes(Physical(0), kNone, WithVfs("{vfs: 4}"));
  REQUIRE(made.size() == 1);
  CHECK_THAT(made[0], Catch::Contains("change=\"virtual functions will be made\""));
  const std::vector<std::string> left = Changes(Physical(1), WithVfs("{vfs: 1}"), kNone);
  REQUIRE(left.size() == 2);
  CHECK_THAT(left[0], Catch::Contains("change=\"virtual functions left alone\"") &&
                          Catch::Contains("stay until `vfio-agent release`"));
  CHECK_THAT(left[1], Catch::Contains("group=21") && Catch::Contains("no longer served"));
}

TEST_CASE("a bundle that another one joins changes in each of its groups", "[config]") {
  const NodeFacts facts =
      Node({Gpu("0000:17:00.0", 17, "vfio-pci"), Gpu("0000:65:00.0", 65, "vfio-pci")});
  const auto bundle = [](const std::string& count) {
    return "resources: [{name: a.b/c, bundle: {members: [{select: [{vendor: \"10de\"}], count: " +
           count + "}]}}]\n";
  };
  const std::vector<std::string> lines = Changes(facts, bundle("1"), bundle("2"));
  REQUIRE(lines.size() == 2);
  CHECK_THAT(lines[0], Catch::Contains("group=17"));
  CHECK_THAT(lines[1], Catch::Contains("group=65"));
}

}  // namespace
}  // namespace vfio_agent
