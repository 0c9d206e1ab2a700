// Tables and what is made of them: values only.
#include <catch2/catch.hpp>

#include "absl/strings/str_split.h"
#include "agent/listing/changes.h"
#include "agent/listing/tables.h"
#include "agent/work/one_shot.h"
#include "test/support/facts.h"

namespace vfio_agent {
namespace {

Picture PictureOf(NodeFacts facts) {
  Picture picture;
  picture.plan = DefaultPlan(facts);
  picture.facts = std::move(facts);
  picture.names = TestNames();
  return picture;
}

// Group 7 with two bridges, group 12 that nobody selected.
Picture Switched() {
  return PictureOf(
      Node({Gpu("0000:1b:00.0", 7), Audio("0000:1b:00.1", 7), Bridge("0000:1a:00.0", 7),
            Bridge("0000:1a:01.0", 7), Nvme("0000:05:00.0", 12)}));
}

std::vector<std::string> Column(const TableRows& rows, const std::string& heading) {
  const auto found = std::ranges::find(rows.front(), heading);
  REQUIRE(found != rows.front().end());
  std::vector<std::string> cells;
  for (size_t i = 1; i < rows.size(); ++i) {
    cells.push_back(rows[i].at(static_cast<size_t>(found - rows.front().begin())));
  }
  return cells;
}

using Cells = std::vector<std::string>;

TEST_CASE("the bridges of a group are one line, unless all or wide was asked for", "[list]") {
  const Picture picture = Switched();
  CHECK(Column(DeviceRows(picture, {}), "ADDRESS") ==
        Cells{"0000:1b:00.0", "0000:1b:00.1", "+2 bridges"});
  CHECK(Column(DeviceRows(picture, {.wide = true}), "ADDRESS") ==
        Cells{"0000:1a:00.0", "0000:1a:01.0", "0000:1b:00.0", "0000:1b:00.1"});
  CHECK(Column(DeviceRows(picture, {.all = true}), "ADDRESS").size() == 5);
}

TEST_CASE("devices stand by group and then by address, those without a group last", "[list]") {
  Picture picture = PictureOf(Node({Gpu("0000:03:00.0", 20), Gpu("0000:02:00.0", 9),
                                    Gpu("0000:04:00.0", -1), Audio("0000:03:00.1", 20)}));
  std::ranges::reverse(picture.plan.groups);
  for (GroupPlan& group : picture.plan.groups) std::ranges::reverse(group.members);
  CHECK(Column(DeviceRows(picture, {}), "ADDRESS") ==
        Cells{"0000:02:00.0", "0000:03:00.0", "0000:03:00.1", "0000:04:00.0"});
  CHECK(Column(GroupRows(picture, {}), "GROUP") == Cells{"9", "20", "-"});
}

TEST_CASE("what nobody selected is listed with all only", "[list]") {
  const Picture picture = Switched();
  CHECK(Column(GroupRows(picture, {}), "GROUP") == Cells{"7"});
  CHECK(Column(GroupRows(picture, {.all = true}), "GROUP") == Cells{"7", "12"});
}

TEST_CASE("without IOMMU groups all still lists every function", "[list]") {
  const Picture picture = PictureOf(Node({Nvme("0000:05:00.0", -1), Bridge("0000:1a:00.0", -1)}));
  const ListWish all = {.all = true};
  CHECK(Column(DeviceRows(picture, all), "ADDRESS") == Cells{"0000:05:00.0", "0000:1a:00.0"});
  CHECK(Column(DeviceRows(picture, all), "GROUP") == Cells{"-", "-"});
  CHECK(Column(DeviceRows(picture, all), "VERDICT") == Cells{"unselected", "unselected"});
  CHECK(DeviceRows(picture, {}).size() == 1);
}

TEST_CASE("a selected function without a group is listed once", "[list]") {
  const Picture picture = PictureOf(Node({Gpu("0000:04:00.0", -1), Nvme("0000:05:00.0", 3)}));
  CHECK(Column(DeviceRows(picture, {.all = true}), "ADDRESS") ==
        Cells{"0000:05:00.0", "0000:04:00.0"});
}

TEST_CASE("a unit stands with the pods that have it", "[list]") {
  Picture picture = Switched();
  picture.plan.resources.at(0).units.at(0).pods = {
      {.pod_namespace = "team", .pod = "vm", .container = "compute"}};
  CHECK(Column(ResourceRows(picture, {}), "WHO OR WHY") == Cells{"team/vm"});
}

TEST_CASE("control characters of a device never reach the terminal", "[list]") {
  Picture picture = Switched();
  picture.names[{0x10de, 0x2330}] = "H100\x1b]0;owned\a\xc2\x9b";
  picture.plan.groups.at(0).members.at(0).driver = "nvidia\x1b[2J";
  const std::string text = FormatTable(DeviceRows(picture, {.all = true}), {.width = 100});
  CHECK(text.find_first_of("\x1b\a\xc2\x9b") == std::string::npos);
}

TEST_CASE("lines fit the width: spare columns go, then the last one is cut", "[list]") {
  const TableRows rows = DeviceRows(Switched(), {.all = true});
  for (const size_t width : {100, 80, 72}) {
    CAPTURE(width);
    const std::string text = FormatTable(rows, {.width = width, .spare = SpareColumns()});
    const std::vector<std::string> lines = absl::StrSplit(text, '\n');
    for (const std::string& line : lines) CHECK(line.size() <= width);
    CHECK_THAT(text, Catch::Contains("0000:1b:00.0") && Catch::Contains("nvidia > vfio-pci"));
  }
  CHECK_THAT(FormatTable(rows, {.width = 200, .spare = SpareColumns()}), Catch::Contains("CLASS"));
  CHECK_THAT(FormatTable(rows, {.width = 72, .spare = SpareColumns()}), !Catch::Contains("CLASS"));
}

TEST_CASE("colours tell states, and take no room", "[list]") {
  const TableRows rows = {{"UNIT", "STATE", "WHY"}, {"ready", "ready", "x"}, {"b", "refused", "y"}};
  const std::string painted = FormatTable(rows, {.paint = StateStyle});
  CHECK(painted ==
        "\x1b[1mUNIT\x1b[0m   \x1b[1mSTATE\x1b[0m    \x1b[1mWHY\x1b[0m\n"
        "ready  \x1b[32mready\x1b[0m    x\n"
        "b      \x1b[31mrefused\x1b[0m  y\n");
  CHECK(FormatTable(rows) == "UNIT   STATE    WHY\nready  ready    x\nb      refused  y\n");
}

TEST_CASE("lines that are gone and new lines, whatever the layout", "[list]") {
  CHECK(ChangedLines("a  1\nb  2\n", "b     2\nc     3\n") == "- a  1\n+ c     3\n");
  CHECK(ChangedLines("a\nb\n", "b\na\n").empty());
  CHECK(ChangedLines("a\na\n", "a\n") == "- a\n");
}

TEST_CASE("progress tells what is done and which groups are at work", "[list]") {
  CHECK(ProgressText({.done = 2, .all = 8, .at_work = {12, 15}, .took = absl::Seconds(3.7)}) ==
        "2 of 8 groups done, 3s: writing to group 12, 15");
  CHECK(ProgressText({.done = 0, .all = 9, .at_work = {1, 2, 3, 4, 5}}) ==
        "0 of 9 groups done, 0s: writing to group 1, 2, 3, 4 and others");
  CHECK(ProgressText({.done = 8, .all = 8}) == "8 of 8 groups done");
}

}  // namespace
}  // namespace vfio_agent
