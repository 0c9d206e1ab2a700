// Who has what over restarts of the agent, the kubelet and the machine.
#include <fstream>
#include <regex>
#include <sstream>

#include "test/agent/boards.h"

namespace vfio_agent {
namespace {

using Generation = FakeKubelet::Generation;

TEST_CASE("R51: an agent that starts finds who has what, before it offers anything",
          "[node][grpc]") {
  Boards boards;
  boards.SetPod({kB});
  boards.Start();
  REQUIRE(boards.Sees("-++"));
  CHECK(boards.kubelet->Resources().at(kH100).messages == 1);
  CHECK_FALSE(boards.daemon->WaitForLine({"event=unit_held", kB, "team/vm"}, kLong).empty());
}

TEST_CASE("R14, R51: a kubelet that has restarted and lists no pod yet frees nothing",
          "[node][grpc]") {
  Boards boards(GENERATE(Generation::k136, Generation::k137));
  boards.Start();
  REQUIRE(boards.Sees("+++"));
  REQUIRE(boards.Allocate({kA}).ok());
  boards.SetPod({kA});
  REQUIRE_FALSE(boards.daemon->WaitForLine({"event=unit_held", kA}, kLong).empty());
  boards.kubelet->Stop();
  boards.kubelet->HidePods(true);
  REQUIRE(boards.kubelet->Start().ok());
  REQUIRE_FALSE(boards.daemon->WaitForLine({"event=kubelet_restarted"}, kLong).empty());
  const int lists = boards.kubelet->PodLists();
  REQUIRE(Eventually([&] { return boards.kubelet->PodLists() >= lists + 3; }, kLong));
  CHECK(boards.Sees("+-+"));
  CHECK(boards.daemon->CountLines({"event=unit_free"}) == 0);
  CHECK_FALSE(boards.Allocate({kB}).ok());
}

TEST_CASE("R51: nothing is written to what a pod had before its kubelet restarted",
          "[node][grpc]") {
  Boards boards;
  boards.SetPod({kLone});
  boards.Start();
  REQUIRE(boards.Sees("+++"));
  boards.kubelet->Stop();
  boards.kubelet->HidePods(true);
  REQUIRE(boards.kubelet->Start().ok());
  REQUIRE_FALSE(boards.daemon->WaitForLine({"event=kubelet_restarted"}, kLong).empty());
  boards.node.Control("rebind " + std::string(kLone) + " nvidia");
  CHECK_FALSE(boards.daemon->WaitForLine({"event=group_refused", "code=held", "pod team/vm"}, kLong)
                  .empty());
  CHECK(boards.node.DriverOf(kLone) == "nvidia");
  CHECK(boards.daemon->CountLines({"event=bind_started", kLone}) == 0);
}

TEST_CASE("R28: an agent with another configuration still lists what pods have of the one before",
          "[node][grpc]") {
  Boards boards;
  boards.Start();
  REQUIRE(boards.Sees("+++"));
  REQUIRE(boards.Allocate({kLone}).ok());
  boards.SetPod({kLone});
  REQUIRE_FALSE(boards.daemon->WaitForLine({"event=unit_held", kLone}, kLong).empty());
  boards.daemon->Signal(SIGTERM);
  REQUIRE(boards.daemon->WaitForEnd(kLong) == 0);
  boards.Start(
      {"--config", boards.node.dir().Write("config.yaml", "aliases: {\"10de:2330\": NEW}\n")});
  CHECK(boards.Sees("++.", "nvidia.com/NEW"));
  CHECK(boards.Sees("..-"));
  CHECK(Eventually([&] { return boards.kubelet->PreStart(kH100, {kLone}).ok(); }, kLong));
  CHECK_FALSE(boards.Allocate({kLone}).ok());
  REQUIRE(boards.kubelet->RemovePod("team", "vm"));
  CHECK(boards.Sees("+++", "nvidia.com/NEW"));
}

TEST_CASE(
    "R28: what a pod was given as a part of a unit is nobody else's under another configuration",
    "[node][grpc]") {
  constexpr char kTrio[] = "nvidia.com/trio";
  Boards boards;
  const auto configure = [&](const std::string& text) {
    return boards.node.dir().Write("config.yaml", text);
  };
  const std::string config = configure(
      "resources: [{name: nvidia.com/trio, bundle: {members: [{select: [{vendor: \"10de\"}], "
      "count: "
      "3}]}}]\n");
  boards.Start({"--config", config});
  REQUIRE(boards.Sees("+..", kTrio));
  REQUIRE(boards.kubelet->Allocate(kTrio, {kA}).ok());
  boards.SetPod({kA}, kTrio);
  REQUIRE_FALSE(boards.daemon->WaitForLine({"event=unit_held", kA}, kLong).empty());
  configure("resources: [{select: [{vendor: \"10de\"}]}]\n");
  SECTION("of the same agent") { boards.daemon->Signal(SIGHUP); }
  SECTION("of a later agent") {
    boards.daemon->Signal(SIGTERM);
    REQUIRE(boards.daemon->WaitForEnd(kLong) == 0);
    const ProgramResult released = boards.node.Run(
        {"release", kLone, "--config", config, "--device-plugin-dir", boards.node.kubelet_dir(),
         "--kubelet-root-dir", boards.node.kubelet_root()});
    CHECK(released.exit_code == 3);
    CHECK_THAT(released.out, Catch::Contains("held") && Catch::Contains("pod team/vm"));
    boards.Start({"--config", config});
  }
  CHECK(boards.Sees(".--"));
  CHECK(boards.Sees("-..", kTrio));
  CHECK_FALSE(boards.Allocate({kLone}).ok());
  REQUIRE(boards.kubelet->RemovePod("team", "vm"));
  CHECK(boards.Sees("+++"));
}

// What the agent before a reboot answered of the unit named a group that is another's now.
void ChangeGroup(const Node& node, int group) {
  const std::string path = node.state_dir() + "/answers.json";
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  REQUIRE_THAT(text.str(), Catch::Contains("\"group\": 34"));
  std::ofstream(path) << std::regex_replace(text.str(), std::regex("\"group\": 34"),
                                            "\"group\": " + std::to_string(group));
}

TEST_CASE("R27: a container does not start with an answer from before a change", "[node][grpc]") {
  Boards boards;
  boards.Start();
  REQUIRE(boards.Sees("+++"));
  REQUIRE(boards.Allocate({kLone}).ok());
  CHECK(boards.kubelet->PreStart(kH100, {kLone}).ok());
  boards.SetPod({kLone});
  REQUIRE_FALSE(boards.daemon->WaitForLine({"event=unit_held", kLone}, kLong).empty());
  boards.daemon->Signal(SIGTERM);
  REQUIRE(boards.daemon->WaitForEnd(kLong) == 0);
  ChangeGroup(boards.node, 35);
  boards.Start();
  REQUIRE(boards.Sees("+++"));
  CHECK_THAT(std::string(boards.kubelet->PreStart(kH100, {kLone}).message()),
             Catch::Contains("IOMMU group 35 then, 34 now") && Catch::Contains("delete the pod"));
  CHECK_FALSE(
      boards.daemon
          ->WaitForLine({"event=prestart_refused", kLone, "group-changed: ", "remedy="}, kLong)
          .empty());
  REQUIRE(boards.Allocate({kLone}).ok());  // a new pod
  CHECK(boards.kubelet->PreStart(kH100, {kLone}).ok());
}

}  // namespace
}  // namespace vfio_agent
