// What the file says of devices that belong together.
#include <catch2/catch.hpp>

#include "agent/config/config.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

constexpr char kSwitch[] = "{select: [{vendor: '10de', device: 22a3}], count: all}";

std::string ErrorOf(const std::string& entry) {
  return Message(ParseConfig("resources: [" + entry + "]", "c.yaml").status());
}

TEST_CASE("a bundle is read with its members, and selects what they select", "[agent]") {
  const auto config = ParseConfig(R"(
resources:
  - name: nvidia.com/board
    bundle:
      unit: device
      members:
        - {select: [{vendor: "10de", class: "0302"}], count: 8}
        - {select: [{vendor: "10de", device: 22a3}], count: all}
        - {select: [{vendor: "15b3"}], near: switch}
)",
                                  "c.yaml");
  REQUIRE(config.ok());
  const ResourceRule& rule = config->policy.resources.at(0);
  CHECK(rule.select.size() == 3);
  CHECK(rule.bundle_by_device);
  REQUIRE(rule.bundle.size() == 3);
  CHECK(rule.bundle[0].count == 8);
  CHECK(rule.bundle[1].count == 0);
  CHECK(rule.bundle[2].count == 1);
  CHECK_FALSE(rule.bundle[1].same_switch);
  CHECK(rule.bundle[2].same_switch);
}

TEST_CASE("partitions are numbers or addresses", "[agent]") {
  const auto config = ParseConfig(
      "resources: [{select: [{vendor: '10de'}], partitions: [[0, 1], ['0000:1B:00.0', 2]]}]",
      "c.yaml");
  REQUIRE(config.ok());
  CHECK(config->policy.resources.at(0).partitions ==
        std::vector<std::vector<std::string>>{{"0", "1"}, {"0000:1b:00.0", "2"}});
}

TEST_CASE("a bundle that is one unit is served by claims, too", "[agent]") {
  CHECK(ErrorOf(std::string("{name: a.b/c, serve: dra, bundle: {members: [") + kSwitch + "]}}") ==
        "");
}

TEST_CASE("what cannot be meant by a bundle or a partition is an error", "[agent]") {
  struct Row {
    std::string entry, error;
  };
  const std::string members = std::string("{members: [") + kSwitch + "]}";
  const Row row = GENERATE_COPY(
      Row{"{bundle: " + members + "}", "a bundle needs a name"},
      Row{"{name: a.b/c, select: [{vendor: '10de'}], bundle: " + members + "}", "not both"},
      Row{"{name: a.b/c, bundle: " + members + ", select: [{vendor: '10de'}]}", "not both"},
      Row{"{name: a.b/c, bundle: " + members + ", partitions: [[0]]}", "not both"},
      Row{"{name: a.b/c, bundle: {members: []}}", "a bundle needs members:"},
      Row{"{name: a.b/c, bundle: {members: [{count: 1}]}}", "a member of a bundle needs select:"},
      Row{"{name: a.b/c, bundle: {members: [{select: [{vendor: '10de'}], count: 0}]}}",
          "want a number from 1 to 256, or all"},
      Row{"{name: a.b/c, bundle: {members: [{select: [{vendor: '10de'}], near: switch}]}}",
          "near: the others are near to the first"},
      Row{"{name: a.b/c, bundle: {members: [{select: [{vendor: '10de'}]}, {select: [{vendor: "
          "'15b3'}], count: all, near: switch}]}}",
          "near: switch wants a count"},
      Row{"{name: a.b/c, bundle: {members: [{select: [{vendor: '10de'}]}, {select: [{vendor: "
          "'15b3'}], near: far}]}}",
          "want switch or any"},
      Row{std::string("{name: a.b/c, bundle: {members: [") + kSwitch + ", " + kSwitch + "]}}",
          "bundle.members[1]: selects the same as an earlier member"},
      Row{std::string("{name: a.b/c, bundle: {unit: half, members: [") + kSwitch + "]}}",
          "want bundle or device"},
      Row{std::string("{name: a.b/c, bundle: {unit: devise, members: [") + kSwitch + "]}}",
          "did you mean 'device'?"},
      Row{"{name: a.b/c, bundle: {members: [{select: [{vendor: '10de'}], near: swich}]}}",
          "want switch or any; did you mean 'switch'?"},
      Row{"{name: a.b/c, select: [{vendor: '15b3'}]}, {name: a.b/c, bundle: " + members + "}",
          "a bundle's name is for one entry only"},
      Row{"{name: a.b/c, serve: dra, bundle: {unit: device, members: [" + std::string(kSwitch) +
              "]}}",
          "resources[0]: unit: device is not for serve: dra"},
      Row{"{select: [{vendor: '10de'}], serve: dra, partitions: [[0, 1]]}",
          "resources[0]: partitions are not for serve: dra"},
      Row{"{select: [{vendor: '10de'}], partitions: [[x]]}", "want a unit's number or address"},
      Row{"{select: [{vendor: '10de'}], partitions: [[1, 1]]}", "1 is in this partition already"},
      Row{"{select: [{vendor: '10de'}], partitions: [[]]}", "a partition needs units"});
  CAPTURE(row.entry);
  CHECK_THAT(ErrorOf(row.entry), Catch::Contains(row.error));
}

}  // namespace
}  // namespace vfio_agent
