// kill -9 at every step of a bind and of a release, of the agent with all its children, and then a
// successor: one that wants the same, one that does not select the devices, one without a journal.
#include <csignal>
#include <fstream>
#include <set>

#include "absl/strings/str_format.h"
#include "test/agent/fault_node.h"

namespace vfio_agent {
namespace {

constexpr absl::Duration kLong = absl::Seconds(60);
const std::vector<std::string> kMany = {"--parallel", "64", "--node-timeout", "60s"};

// Killed while the write of each step is under way: its record is in the journal. Half of the
// groups had that write done all the same, as an unbind is that no signal ends; the other half had
// not. As each record is written before its own step and after the step before, this is also each
// place between two steps.
struct Killed {
  std::vector<Cell> cells;
  explicit Killed(std::string_view table) : cells(CellsOf(table, {"kill -9"})) {
    std::erase_if(cells, [](const Cell& cell) { return cell.op == "note" || cell.op == "node"; });
  }
  int steps() const { return static_cast<int>(cells.size()); }
  int whole() const { return 2 * steps() + 1; }  // this group is left in peace
  const Cell& CellOf(int group) const { return cells[static_cast<size_t>((group - 1) % steps())]; }
  bool Done(int group) const { return group > steps(); }

  void BlockAll(const FaultNode& node) const {
    for (int group = 1; group < whole(); ++group) node.Block(CellOf(group), group, Done(group));
  }
  // Kills in the middle of all steps, and lets those writes happen that nothing can stop.
  void Kill(Daemon& daemon, const FaultNode& node) const {
    REQUIRE(Eventually([&] { return node.Running() == 2 * cells.size(); }, kLong));
    KillWithChildren(daemon);
    for (int group = steps() + 1; group < whole(); ++group) node.Unblock(group);
    REQUIRE(Eventually([&] { return node.Running() == 0; }, kLong));
  }
};

std::string NothingSelected(const FaultNode& node) {
  return node.node().dir().Write("nothing.yaml",
                                 "resources: [{select: [{address: \"0000:ff:00.0\"}]}]\n");
}

void LoseJournal(const FaultNode& node) {
  std::filesystem::remove_all(node.node().state_dir() + "/devices");
}

bool OnVfio(const FaultNode& node, int group) {
  return node.StateOf(group, 0).driver == "vfio-pci" && node.StateOf(group, 1).driver == "vfio-pci";
}

// Ends by SIGTERM as if nothing had been.
void CheckWell(Daemon& daemon, const FaultNode& node) {
  daemon.Signal(SIGTERM);
  CHECK(daemon.WaitForEnd(kLong) == 0);
  node.CheckHostUntouched();
}

TEST_CASE("kill -9 at every step of a bind: the successor finishes, or puts back", "[matrix]") {
  const Killed killed(kBindTable);
  const FaultNode node(killed.whole());
  const auto kubelet = node.node().StartKubelet();
  killed.BlockAll(node);
  {
    Daemon daemon(node.node().DaemonArguments(kMany));
    REQUIRE(Eventually([&] { return node.IsTaken(killed.whole()); }, kLong));
    killed.Kill(daemon, node);
  }
  const std::vector<std::string> whole = node.WritesOf(killed.whole());
  SECTION("the same configuration: all are bound, one record each, and it can all be undone") {
    Daemon next(node.node().DaemonArguments(kMany));
    for (int group = 1; group <= killed.whole(); ++group) {
      INFO("group " << group << ": " << killed.CellOf(group).Text());
      CHECK(Eventually([&] { return node.IsTaken(group); }, kLong));
    }
    CHECK(node.ReadRecords().size() == 2 * static_cast<size_t>(killed.whole()));
    CHECK(node.WritesOf(killed.whole()) == whole);
    CheckWell(next, node);
    node.CheckRoundTrip();
  }
  SECTION("devices that nobody selects any more: all is as it was, but what was bound in full") {
    Daemon next(node.node().DaemonArguments({"--config", NothingSelected(node)}));
    for (int group = 1; group < killed.whole(); ++group) {
      INFO("group " << group << ": " << killed.CellOf(group).Text());
      CHECK(Eventually([&] { return !node.HasRecord(group, 0) && !node.HasRecord(group, 1); },
                       kLong));
      CHECK(node.IsHome(group));
    }
    CHECK(node.WritesOf(killed.whole()) == whole);
    CHECK(node.IsTaken(killed.whole()));
    CheckWell(next, node);
  }
  SECTION("without a journal: all are bound anew, or adopted") {
    LoseJournal(node);
    Daemon next(node.node().DaemonArguments(kMany));
    for (int group = 1; group <= killed.whole(); ++group) {
      INFO("group " << group << ": " << killed.CellOf(group).Text());
      CHECK(Eventually([&] { return OnVfio(node, group); }, kLong));
    }
    CHECK_FALSE(
        next.WaitForLine({"event=adopted", absl::StrFormat("group=%d ", killed.whole())}, kLong)
            .empty());
    CHECK(node.WritesOf(killed.whole()) == whole);
    CheckWell(next, node);
  }
  SECTION("without a journal, and nobody selects them: nothing is known to be ours, nor touched") {
    LoseJournal(node);
    const std::string writes = node.node().Writes();
    Daemon next(node.node().DaemonArguments({"--config", NothingSelected(node)}));
    REQUIRE_FALSE(next.WaitForLine({"event=iommu_on"}, kLong).empty());
    CheckWell(next, node);
    CHECK(node.node().Writes() == writes);
  }
}

TEST_CASE("kill -9 while the group's devices are noted in the journal: nothing was written",
          "[matrix]") {
  const FaultNode node(3);
  const auto kubelet = node.node().StartKubelet();
  for (int group = 1; group <= 3; ++group) {
    node.Block({.function = 0, .op = "d3cold"}, group, false);
  }
  {
    Daemon daemon(node.node().DaemonArguments());
    REQUIRE(Eventually([&] { return node.Running() == 3; }, kLong));
    KillWithChildren(daemon);
    REQUIRE(Eventually([&] { return node.Running() == 0; }, kLong));
  }
  // As if it had come earlier: before the first record, before the second, in the middle of it.
  const auto record = [&](int group, int function) {
    return node.node().state_dir() + "/devices/" + FaultNode::AddressOf(group, function) + ".json";
  };
  for (const int group : {1, 2, 3}) std::filesystem::remove(record(group, 1));
  std::filesystem::remove(record(1, 0));
  std::ofstream(record(3, 1) + ".new") << "{\"schema\": \"vfio-ag";
  SECTION("the same configuration") {
    const Daemon next(node.node().DaemonArguments());
    for (int group = 1; group <= 3; ++group) {
      CHECK(Eventually([&] { return node.IsTaken(group); }, kLong));
    }
    CHECK(next.CountLines({"event=journal_set_aside"}) == 0);
  }
  SECTION("nobody selects them any more") {
    const Daemon next(node.node().DaemonArguments({"--config", NothingSelected(node)}));
    CHECK(Eventually([&] { return node.ReadRecords().empty(); }, kLong));
    for (int group = 1; group <= 3; ++group) CHECK(node.IsHome(group));
  }
}

TEST_CASE("kill -9 while the last step waits for /dev/vfio/GROUP", "[matrix]") {
  const FaultNode node(1);
  const auto kubelet = node.node().StartKubelet();
  node.Inject({.function = 1, .op = "node", .fault = "hangs"}, 1);
  {
    Daemon daemon(node.node().DaemonArguments(kMany));
    REQUIRE(Eventually([&] { return OnVfio(node, 1); }, kLong));
    KillWithChildren(daemon);
  }
  CHECK_FALSE(node.IsTaken(1));
  SECTION("the same configuration: bound, and the journal says so") {
    const Daemon next(node.node().DaemonArguments());
    CHECK_FALSE(next.WaitForLine({"event=recovered", "group=1 "}, kLong).empty());
    CHECK(node.IsTaken(1));
  }
  SECTION("nobody selects it any more: back") {
    const Daemon next(node.node().DaemonArguments({"--config", NothingSelected(node)}));
    CHECK(Eventually([&] { return node.ReadRecords().empty(); }, kLong));
    CHECK(node.IsHome(1));
  }
}

TEST_CASE("kill -9 at every step of a release: the successor completes it, or takes all again",
          "[matrix]") {
  const Killed killed(kReleaseTable);
  const FaultNode node(killed.whole());
  const auto kubelet = node.node().StartKubelet();
  REQUIRE(node.node().Run({"bind", "--parallel", "16"}).exit_code == 0);
  {
    std::vector<std::string> arguments = kMany;
    arguments.insert(arguments.end(), {"--on-exit", "release"});
    Daemon daemon(node.node().DaemonArguments(arguments));
    REQUIRE(kubelet->WaitHealthy(kH100, static_cast<size_t>(killed.whole()), kLong));
    killed.BlockAll(node);
    daemon.Signal(SIGTERM);
    REQUIRE(Eventually([&] { return node.IsHome(killed.whole()); }, kLong));
    killed.Kill(daemon, node);
  }
  SECTION("nobody selects them any more: all is as it was before the bind") {
    Daemon next(node.node().DaemonArguments({"--config", NothingSelected(node)}));
    CHECK(Eventually([&] { return node.ReadRecords().empty(); }, kLong));
    for (int group = 1; group <= killed.whole(); ++group) {
      INFO("group " << group << ": " << killed.CellOf(group).Text());
      CHECK(node.IsHome(group));
    }
    CheckWell(next, node);
  }
  SECTION("the same configuration: all are bound again, and it can all be undone") {
    Daemon next(node.node().DaemonArguments(kMany));
    for (int group = 1; group <= killed.whole(); ++group) {
      INFO("group " << group << ": " << killed.CellOf(group).Text());
      CHECK(Eventually([&] { return node.IsTaken(group); }, kLong));
    }
    CheckWell(next, node);
    node.CheckRoundTrip();
  }
  SECTION("the release is asked for again: it completes") {
    CHECK(node.node().Run({"release", "--parallel", "16"}).exit_code == 0);
    for (int group = 1; group <= killed.whole(); ++group) CHECK(node.IsHome(group));
    CHECK(node.ReadRecords().empty());
  }
  SECTION("without a journal: bound anew or adopted, but an override that may be somebody's") {
    LoseJournal(node);
    std::set<int> foreign;  // on its way back a device has its old driver in the override
    for (int group = 1; group <= killed.whole(); ++group) {
      for (const int function : {0, 1}) {
        const FunctionState state = node.StateOf(group, function);
        if (state.driver != "vfio-pci" && state.driver_override != "(null)") foreign.insert(group);
      }
    }
    CHECK(foreign.size() > 4);
    const std::string writes = node.node().Writes();
    Daemon next(node.node().DaemonArguments(kMany));
    for (int group = 1; group <= killed.whole(); ++group) {
      INFO("group " << group << ": " << killed.CellOf(group).Text());
      if (!foreign.contains(group)) {
        CHECK(Eventually([&] { return OnVfio(node, group); }, kLong));
        continue;
      }
      const std::string key = absl::StrFormat("group=%d ", group);
      CHECK_FALSE(next.WaitForLine({"event=group_refused", key, "foreign-manager"}, kLong).empty());
    }
    CheckWell(next, node);
    const std::string fresh = node.node().Writes().substr(writes.size());
    for (const int group : foreign) {
      CHECK(fresh.find(FaultNode::AddressOf(group, 0)) == std::string::npos);
    }
  }
}

}  // namespace
}  // namespace vfio_agent
