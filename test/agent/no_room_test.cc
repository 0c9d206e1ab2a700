// The column "no room" of the fault matrix: a real ENOSPC for the journal, at each step.
#include <csignal>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "test/agent/fault_node.h"

namespace vfio_agent {
namespace {

constexpr absl::Duration kLong = absl::Seconds(60);
constexpr char kNoSpace[] = "No space left on device";

int Count(const std::vector<Cell>& cells) { return static_cast<int>(cells.size()); }
const Cell& CellOf(const std::vector<Cell>& cells, int group) {
  return cells[static_cast<size_t>(group - 1)];
}

// Those before whose record no write of the plan comes, and the others.
std::vector<Cell> NoRoom(std::string_view table, bool first) {
  std::vector<Cell> cells = CellsOf(table, {"no room"});
  const std::string begin = table == kBindTable ? "d3cold" : "override";
  std::erase_if(cells, [&](const Cell& cell) {
    return first != (cell.op == "note" || (cell.op == begin && cell.function == 0));
  });
  return cells;
}

// Whether a group before `group` has a record, or is writing one.
bool HaveRecords(const FaultNode& node, int group) {
  const std::string dir = node.node().state_dir() + "/devices/";
  for (int before = 1; before < group; ++before) {
    for (const int function : {0, 1}) {
      const std::string fresh = dir + FaultNode::AddressOf(before, function) + ".json.new";
      if (std::filesystem::exists(fresh) || node.HasRecord(before, function)) return true;
    }
  }
  return false;
}

// Takes all room while the groups before `group` have none: one that is tried again in that moment
// would give its own back, and the journal of `group` would find it.
bool FillBeside(const FaultNode& node, int group) {
  return Eventually(
      [&] {
        node.disk().Fill();
        if (HaveRecords(node, group)) return false;
        node.disk().Fill();
        return !HaveRecords(node, group);
      },
      kLong);
}

TEST_CASE("a bind that cannot be journalled before its first write makes no write", "[matrix]") {
  const std::vector<Cell> cells = NoRoom(kBindTable, true);
  REQUIRE(cells.size() == 3);  // both notes, and the record of the first step
  const int room = GENERATE(0, 1, 2);
  const FaultNode node(1);
  node.disk().Fill(room);
  const ProgramResult result = node.node().Run({"bind"});
  INFO(result.out);
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.out, Catch::Contains(kNoSpace) && Catch::Contains("permission-denied") &&
                             Catch::Contains("remedy: make the state directory (stateDir)"));
  CHECK(node.node().Writes().empty());
  Cell cell = cells.front();
  cell.function = 0;
  node.CheckEnd(cell, 1);
  node.disk().MakeRoom();
  node.CheckRoundTrip();
}

TEST_CASE("a bind whose journal fills up half-way is put back, and bound when there is room",
          "[matrix]") {
  std::vector<Cell> cells = NoRoom(kBindTable, false);
  std::erase_if(cells, [](const Cell& cell) { return cell.op == "node"; });
  REQUIRE(Count(cells) == 7);
  const FaultNode node(Count(cells));
  for (int group = 1; group <= node.groups(); ++group) {
    node.BlockBefore(CellOf(cells, group), group, kBindTable);
  }
  const auto kubelet = node.node().StartKubelet();
  const Daemon daemon(node.node().DaemonArguments({"--parallel", "16"}));
  REQUIRE(Eventually([&] { return node.Running() == cells.size(); }, kLong));
  // One after the other: what is put back leaves room for two records.
  for (int group = 1; group <= node.groups(); ++group) {
    const Cell& cell = CellOf(cells, group);
    INFO(cell.Text());
    REQUIRE(FillBeside(node, group));
    node.Unblock(group);
    const std::string key = absl::StrFormat("group=%d ", group);
    CHECK_FALSE(
        daemon.WaitForLine({"event=bind_failed", key, kNoSpace, "next=\"put back"}, kLong).empty());
  }
  node.disk().MakeRoom();
  for (int group = 1; group <= node.groups(); ++group) {
    INFO(CellOf(cells, group).Text());
    CHECK(Eventually([&] { return node.IsTaken(group); }, kLong));
  }
}

TEST_CASE("a bind put back for want of room in the journal leaves everything as it was",
          "[matrix]") {
  std::vector<Cell> cells = NoRoom(kBindTable, false);
  std::erase_if(cells, [](const Cell& cell) { return cell.op == "node"; });
  const Cell cell = GENERATE_REF(from_range(cells));
  CAPTURE(cell.Text());
  const FaultNode node(1);
  node.BlockBefore(cell, 1, kBindTable);
  const auto kubelet = node.node().StartKubelet();
  const Daemon daemon(node.node().DaemonArguments());
  REQUIRE(Eventually([&] { return node.Running() == 1; }, kLong));
  node.disk().Fill();
  node.Unblock(1);
  REQUIRE_FALSE(daemon.WaitForLine({"event=bind_failed", kNoSpace}, kLong).empty());
  node.disk().Fill();
  node.CheckEnd(cell, 1);
}

TEST_CASE("a bind that the journal has no room to close is bound, and said so when there is room",
          "[matrix]") {
  const FaultNode node(1);
  const Cell last = {.function = 1, .op = "node"};
  node.BlockBefore(last, 1, kBindTable);
  const auto kubelet = node.node().StartKubelet();
  const Daemon daemon(node.node().DaemonArguments());
  REQUIRE(Eventually([&] { return node.Running() == 1; }, kLong));
  node.disk().Fill();
  node.Unblock(1);
  REQUIRE_FALSE(daemon.WaitForLine({"event=bind_failed", "journal", kNoSpace}, kLong).empty());
  const std::string writes = node.node().Writes();
  // The next try comes and finds no room still.
  const absl::Time later = absl::Now() + absl::Milliseconds(1500);
  REQUIRE(Eventually([&] { return absl::Now() >= later; }, kLong));
  CHECK(daemon.CountLines({kNoSpace}) == 1);
  CHECK(daemon.CountLines({"event=recovered"}) == 0);
  CHECK(node.node().Writes() == writes);
  node.disk().MakeRoom();
  CHECK_FALSE(daemon.WaitForLine({"event=recovered"}, kLong).empty());
  CHECK(node.IsTaken(1));
}

TEST_CASE("a release that cannot be journalled makes no write, and the device stays ours",
          "[matrix]") {
  const std::vector<Cell> cells = NoRoom(kReleaseTable, true);
  REQUIRE(cells.size() == 1);  // a record that is there already makes room for the next
  const FaultNode node(1);
  REQUIRE(node.node().Run({"bind"}).exit_code == 0);
  const std::string writes = node.node().Writes();
  node.disk().Fill();
  const ProgramResult result = node.node().Run({"release"});
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.out, Catch::Contains(kNoSpace));
  CHECK(node.node().Writes() == writes);
  CHECK(node.IsTaken(1));
  node.disk().MakeRoom();
  node.CheckRoundTrip();
}

TEST_CASE("a release whose journal fills up half-way stops there, and the next one completes it",
          "[matrix]") {
  const std::vector<Cell> cells = NoRoom(kReleaseTable, false);
  REQUIRE(Count(cells) == 9);
  const FaultNode node(Count(cells));
  const auto kubelet = node.node().StartKubelet();
  Daemon daemon(node.node().DaemonArguments({"--parallel", "16", "--on-exit", "release"}));
  for (int group = 1; group <= node.groups(); ++group) {
    REQUIRE(Eventually([&] { return node.IsTaken(group); }, kLong));
    node.BlockBefore(CellOf(cells, group), group, kReleaseTable);
  }
  daemon.Signal(SIGTERM);
  REQUIRE(Eventually([&] { return node.Running() == cells.size(); }, kLong));
  node.disk().Fill();
  for (int group = 1; group <= node.groups(); ++group) node.Unblock(group);
  CHECK(daemon.WaitForEnd(kLong) == 1);
  for (int group = 1; group <= node.groups(); ++group) {
    INFO(CellOf(cells, group).Text());
    CHECK_FALSE(
        daemon.WaitForLine({absl::StrFormat("group %d: failed", group)}, absl::Seconds(1)).empty());
    CHECK(node.HasRecord(group, CellOf(cells, group).function));
  }
  CHECK_FALSE(daemon.WaitForLine({kNoSpace}, absl::Seconds(1)).empty());
  node.disk().MakeRoom();
  CHECK(node.node().Run({"release"}).exit_code == 0);
  for (int group = 1; group <= node.groups(); ++group) CHECK(node.IsHome(group));
  CHECK(node.ReadRecords().empty());
}

TEST_CASE("R10: on a full disk an agent has the node all the same, and a second one waits",
          "[matrix]") {
  const FaultNode node(1);
  node.disk().Fill();
  const Daemon first(node.node().DaemonArguments());
  REQUIRE_FALSE(first.WaitForLine({"event=agent_started"}, kLong).empty());
  CHECK_FALSE(first.WaitForLine({"event=note", "agent.lock", kNoSpace}, kLong).empty());
  const Daemon second(node.node().DaemonArguments());
  CHECK_FALSE(second.WaitForLine({"event=agent_waiting"}, kLong).empty());
  CHECK(second.CountLines({"event=agent_started"}) == 0);
}

}  // namespace
}  // namespace vfio_agent
