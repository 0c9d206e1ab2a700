// The fault matrix of bind and release: each cell of fault_table.h in a group of its own, all of
// them suffered by one run of the agent.
#include <csignal>
#include <fstream>
#include <sstream>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "test/agent/fault_node.h"

namespace vfio_agent {
namespace {

constexpr absl::Duration kLong = absl::Seconds(60);
const std::vector<std::string> kErrors = {"EBUSY", "EINVAL", "ENODEV", "EIO", "vanishes", "taken"};

int Count(const std::vector<Cell>& cells) { return static_cast<int>(cells.size()); }

// Cell i suffers in group i + 1.
void InjectAll(const FaultNode& node, const std::vector<Cell>& cells,
               FaultNode::Often often = FaultNode::Often::kOnce) {
  for (int i = 0; i < Count(cells); ++i) node.Inject(cells[static_cast<size_t>(i)], i + 1, often);
}

void CheckAll(const FaultNode& node, const std::vector<Cell>& cells) {
  for (int i = 0; i < Count(cells); ++i) node.CheckEnd(cells[static_cast<size_t>(i)], i + 1);
}

TEST_CASE("the tables that are tested are those of the README", "[matrix]") {
  std::ifstream file(MATRIX_README);
  std::stringstream text;
  text << file.rdbuf();
  CHECK_THAT(text.str(), Catch::Contains(kBindTable) && Catch::Contains(kReleaseTable));
}

TEST_CASE("a write of a bind that fails puts its group back, whatever the step and the answer",
          "[matrix]") {
  const auto fault =
      GENERATE(as<std::string>(), "EBUSY", "EINVAL", "ENODEV", "EIO", "vanishes", "taken", "hangs");
  CAPTURE(fault);
  std::vector<Cell> cells = CellsOf(kBindTable, {fault});
  // What hangs is the daemon's to end; a node that never comes is not.
  std::erase_if(cells, [](const Cell& cell) { return cell.fault == "hangs" && cell.op != "node"; });
  const FaultNode node(Count(cells) + 1);
  InjectAll(node, cells);
  const ProgramResult result =
      node.node().Run({"bind", "--parallel", "16", "--node-timeout", "300ms"});
  CHECK(result.exit_code == 1);
  CheckAll(node, cells);
  CHECK(node.IsTaken(Count(cells) + 1));
  node.CheckOneOwnerEach();
  for (int group = 1; group <= Count(cells); ++group) {
    CHECK_THAT(result.out, Catch::Contains(absl::StrFormat("group %d: failed", group)));
  }
  node.Repair();
  node.CheckRoundTrip();
  node.CheckHostUntouched();
}

TEST_CASE("while a write of a bind goes on failing, nothing is lost and the companion is at home",
          "[matrix]") {
  const auto fault = GENERATE(from_range(kErrors));
  CAPTURE(fault);
  const std::vector<Cell> cells = CellsOf(kBindTable, {fault});
  const FaultNode node(Count(cells));
  InjectAll(node, cells, FaultNode::Often::kAlways);
  CHECK(node.node().Run({"bind", "--parallel", "16"}).exit_code == 1);
  for (int group = 1; group <= node.groups(); ++group) {
    const Cell& cell = cells[static_cast<size_t>(group - 1)];
    const FunctionState state = node.StateOf(group, cell.function);
    INFO("group " << group << ": " << cell.Text() << "\nis " << state);
    CHECK(node.StateOf(group, 1 - cell.function) == FaultNode::HomeOf(1 - cell.function));
    // What is not as it was has a record that says how it was, or has left us.
    const bool back = state == FaultNode::HomeOf(cell.function);
    CHECK(
        (back || !state.present || cell.fault == "taken" || node.HasRecord(group, cell.function)));
  }
  node.Repair();
  SECTION("and the next bind takes all") { node.CheckRoundTrip(); }
  SECTION("and release brings back what was left half-way") {
    const ProgramResult release = node.node().Run({"release", "--parallel", "16"});
    INFO(release.out << release.err);
    CHECK(release.exit_code == 0);
    node.CheckOneOwnerEach();
    CHECK(node.ReadRecords().empty());
    node.CheckRoundTrip();
  }
}

TEST_CASE("a write of a bind that blocks costs its own group, and is bound when the kernel returns",
          "[matrix]") {
  std::vector<Cell> cells = CellsOf(kBindTable, {"in time", "late", "hangs", "stuck"});
  std::erase_if(cells, [](const Cell& cell) { return cell.op == "node"; });
  const FaultNode node(Count(cells) + 1);
  InjectAll(node, cells);
  const auto kubelet =
      node.node().StartKubelet();  // without its word a half-bound group may be held
  const Daemon daemon(node.node().DaemonArguments({"--unbind-timeout", "1s", "--parallel", "16"}));
  const auto group_key = [](int group) { return absl::StrFormat("group=%d ", group); };
  for (int group = 1; group <= Count(cells); ++group) {
    const Cell& cell = cells[static_cast<size_t>(group - 1)];
    INFO("group " << group << ": " << cell.Text());
    // Whether what comes back late is seen to be late depends on how busy the machine is.
    if (cell.fault == "in time" || cell.fault == "late") continue;
    CHECK_FALSE(
        daemon.WaitForLine({"event=bind_stuck", "code=unbind-timeout", group_key(group)}, kLong)
            .empty());
    if (cell.fault != "stuck") continue;
    REQUIRE_FALSE(
        daemon.WaitForLine({"event=bind_stuck", "code=unbind-stuck", group_key(group)}, kLong)
            .empty());
    const std::vector<std::string> writes = node.WritesOf(group);
    REQUIRE_FALSE(
        daemon.WaitForLine({"event=group_refused", "code=unbind-stuck", group_key(group)}, kLong)
            .empty());
    CHECK(node.WritesOf(group) == writes);  // no second writer
    node.node().Control("release-blocked " + FaultNode::AddressOf(group, cell.function));
  }
  for (int group = 1; group <= node.groups(); ++group) {
    INFO("group " << group);
    CHECK(Eventually([&] { return node.IsTaken(group); }, kLong));
  }
  INFO(daemon.Log());
  CheckAll(node, cells);
  node.CheckHostUntouched();
  const ProgramResult release = node.node().Run({"release", "--parallel", "16"});
  INFO(release.out << release.err);
}

TEST_CASE("a device that cannot be put back keeps no other from it", "[matrix]") {
  const FaultNode node(1);
  // vfio-pci takes the GPU, and then the old driver does not want it back.
  node.node().Control("fault {device: \"0000:01:00.0\", op: probe, once: true}");
  node.node().Control("fault {device: \"0000:01:00.0\", op: probe, errno: EIO}");
  node.Inject({.function = 1, .op = "probe", .fault = "EIO"}, 1);
  CHECK(node.node().Run({"bind"}).exit_code == 1);
  CHECK(node.StateOf(1, 0).driver.empty());
  CHECK(node.HasRecord(1, 0));
  CHECK(node.StateOf(1, 1) == FaultNode::HomeOf(1));
  node.Repair();
  CHECK(node.node().Run({"release"}).exit_code == 0);
  CHECK(node.IsHome(1));
}

TEST_CASE("a write that hangs each time is tried again after a pause, and told of once",
          "[matrix]") {
  const FaultNode node(1);
  node.Inject({.function = 0, .op = "unbind", .fault = "hangs"}, 1, FaultNode::Often::kAlways);
  const auto kubelet = node.node().StartKubelet();
  const absl::Time start = absl::Now();
  const Daemon daemon(node.node().DaemonArguments({"--unbind-timeout", "1s"}));
  // A second for the write, and the pause after it; without that it would be at once.
  const auto tries = [&] {
    const std::vector<std::string> writes = node.WritesOf(1);
    return std::ranges::count_if(writes, [](const std::string& line) {
      return line.find("nvidia/unbind") != std::string::npos;
    });
  };
  REQUIRE(Eventually([&] { return tries() >= 2; }, kLong));
  CHECK(absl::Now() - start > absl::Seconds(2));
  CHECK(daemon.CountLines({"event=bind_stuck", "code=unbind-timeout", "nvidia/unbind"}) == 1);
  CHECK(daemon.CountLines({"event=bind_started"}) == 1);
  node.Repair();
  CHECK(Eventually([&] { return node.IsTaken(1); }, kLong));
}

TEST_CASE("a write of a release that fails leaves what the next release or bind completes",
          "[matrix]") {
  const auto fault = GENERATE(from_range(kErrors));
  CAPTURE(fault);
  const std::vector<Cell> cells = CellsOf(kReleaseTable, {fault});
  const FaultNode node(Count(cells));
  REQUIRE(node.node().Run({"bind", "--parallel", "16"}).exit_code == 0);
  InjectAll(node, cells);
  const ProgramResult result = node.node().Run({"release", "--parallel", "16"});
  CHECK(result.exit_code == 1);
  for (int group = 1; group <= node.groups(); ++group) {
    const Cell& cell = cells[static_cast<size_t>(group - 1)];
    INFO("group " << group << ": " << cell.Text());
    CHECK_THAT(result.out, Catch::Contains(absl::StrFormat("group %d: failed", group)));
    CHECK(node.HasRecord(group, cell.function));
    CHECK(node.StateOf(group, cell.function).present == (cell.end != "gone"));
  }
  node.Repair();
  SECTION("release") {
    const ProgramResult again = node.node().Run({"release", "--parallel", "16"});
    INFO(again.out << again.err);
    CHECK(again.exit_code == 0);
    for (int group = 1; group <= node.groups(); ++group) {
      Cell cell = cells[static_cast<size_t>(group - 1)];
      if (cell.end != "other") cell.end = "back";
      node.CheckEnd(cell, group);
    }
    node.CheckOneOwnerEach();
  }
  SECTION("bind") {}
  node.CheckRoundTrip();
  node.CheckHostUntouched();
}

TEST_CASE("a write of a release that blocks for a moment is waited for", "[matrix]") {
  const std::vector<Cell> cells = CellsOf(kReleaseTable, {"in time"});
  const FaultNode node(Count(cells));
  REQUIRE(node.node().Run({"bind", "--parallel", "16"}).exit_code == 0);
  InjectAll(node, cells);
  const ProgramResult result = node.node().Run({"release", "--parallel", "64"});
  INFO(result.out << result.err);
  CHECK(result.exit_code == 0);
  CheckAll(node, cells);
  node.CheckHostUntouched();
}

TEST_CASE("a write of a release that blocks is given up in time, and the next release completes it",
          "[matrix]") {
  const std::vector<Cell> cells = CellsOf(kReleaseTable, {"late", "hangs", "stuck"});
  const FaultNode node(Count(cells));
  REQUIRE(node.node().Run({"bind", "--parallel", "16"}).exit_code == 0);
  InjectAll(node, cells);
  const std::vector<std::string> release = {"release", "--unbind-timeout", "1s", "--parallel",
                                            "64"};
  const ProgramResult result = node.node().Run(release);
  CHECK(result.exit_code == 1);
  const ProgramResult beside = node.node().Run(release);
  CHECK(beside.exit_code != 0);
  for (int group = 1; group <= node.groups(); ++group) {
    const Cell& cell = cells[static_cast<size_t>(group - 1)];
    INFO("group " << group << ": " << cell.Text());
    const auto said = [&](const std::string& word) {
      return Catch::Contains(absl::StrFormat("group %d: %s", group, word));
    };
    CHECK_THAT(result.out, cell.end == "left" ? said("failed") : said("released"));
    if (cell.fault == "stuck") {
      CHECK_THAT(beside.out, !said("released"));
      node.node().Control("release-blocked " + FaultNode::AddressOf(group, cell.function));
    }
  }
  ProgramResult last;
  CHECK(Eventually([&] { return (last = node.node().Run(release)).exit_code == 0; }, kLong));
  INFO(last.out << last.err);
  for (int group = 1; group <= node.groups(); ++group) {
    Cell cell = cells[static_cast<size_t>(group - 1)];
    cell.end = "back";
    node.CheckEnd(cell, group);
  }
  node.CheckOneOwnerEach();
  node.CheckHostUntouched();
}

}  // namespace
}  // namespace vfio_agent
