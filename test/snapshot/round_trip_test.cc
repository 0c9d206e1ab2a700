// What the program says of a node and what it says of the node's snapshot is the same.
#include <fstream>
#include <iterator>
#include <regex>

#include "test/agent/node.h"

namespace vfio_agent {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> Machines() {
  std::vector<std::string> machines;
  for (const char* folder : {"", "/cases"}) {
    for (const auto& entry : fs::directory_iterator(std::string(MACHINES) + folder)) {
      if (entry.path().extension() != ".yaml") continue;
      machines.push_back((*folder == '\0' ? "" : "cases/") + entry.path().stem().string());
    }
  }
  std::ranges::sort(machines);
  return machines;
}

std::string Slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Pods, containers and mount points have other names in a snapshot, and are no verdicts.
std::string WithoutNames(const std::string& text) {
  static const std::regex kPrivate(
      "pod [0-9a-f-]{32,36}|container [0-9a-f]{12}|crio-[^.]*\\.scope|mounted on "
      "[^\"]*|\\([^()]*mapper[^()]*\\)");
  return std::regex_replace(text, kPrivate, "(private)");
}

// What every command that reads answers, and its exit code.
std::string Answers(const std::vector<std::string>& where, const nlohmann::json& groups) {
  std::vector<std::vector<std::string>> commands = {{"plan", "--all", "-o", "json", "--exit-code"},
                                                    {"list", "--all", "-o", "json"},
                                                    {"list", "groups", "--all", "-o", "json"}};
  std::vector<std::string> explain = {"explain", "-o", "json"};
  for (const auto& group : groups) {
    if (!group.at("group").is_null()) {
      explain.push_back("group:" + std::to_string(group.at("group").get<int>()));
    }
  }
  if (explain.size() > 3) commands.push_back(explain);
  std::string answers;
  for (std::vector<std::string>& command : commands) {
    command.insert(command.end(), where.begin(), where.end());
    const ProgramResult result = RunAgent(command);
    answers += command.front() + " " + std::to_string(result.exit_code) + "\n" + result.out;
  }
  return WithoutNames(answers);
}

// False where a read was given up.
bool IsWhole(const nlohmann::json& document) {
  return document.at("unfinished").empty() &&
         std::ranges::none_of(document.at("not_read"), [](const nlohmann::json& failure) {
           return failure.at("why").get<std::string>().find("timed out") != std::string::npos;
         });
}

// Takes a snapshot; what it says of itself. A read on a busy machine may not return in time: then
// the snapshot is taken again.
nlohmann::json TakeWhole(std::vector<std::string> words) {
  constexpr int kTries = 5;
  words.insert(words.end(), {"--force", "-o", "json"});
  nlohmann::json document;
  for (int i = 0; i < kTries && (i == 0 || !IsWhole(document)); ++i) {
    const ProgramResult taken = RunAgent(words);
    INFO(taken.err);
    REQUIRE(taken.exit_code == 0);
    document = nlohmann::json::parse(taken.out);
  }
  return document;
}

void CheckMachine(const std::string& machine) {
  CAPTURE(machine);
  const Node node(machine);
  const std::string file = node.dir().path() + "/node.tar.gz";
  CHECK(TakeWhole(node.With({"snapshot", file})).at("unfinished").empty());
  const nlohmann::json groups = node.RunJson({"plan", "--all"}).at("groups");
  // A look at a busy machine may not return in time: then the node says that it does not know.
  std::string here, there;
  Eventually(
      [&] {
        here = Answers({"--root", node.root(), "--state-dir", node.state_dir()}, groups);
        there = Answers({"--root", file}, groups);
        return here == there;
      },
      absl::Seconds(1));
  CHECK(there == here);
  // The same node again, and the snapshot's own snapshot: the same bytes.
  const std::string again = node.dir().path() + "/again.tar.gz";
  TakeWhole(node.With({"snapshot", again}));
  CHECK((Slurp(again) == Slurp(file)));
  TakeWhole({"snapshot", "--root", file, again});
  CHECK((Slurp(again) == Slurp(file)));
  CHECK(node.Writes().empty());
}

// Several cases, so that they run side by side.
constexpr size_t kParts = 8;

void CheckPart(size_t part) {
  const std::vector<std::string> machines = Machines();
  REQUIRE(machines.size() > 50);
  for (size_t i = part; i < machines.size(); i += kParts) CheckMachine(machines[i]);
}

TEST_CASE("a snapshot answers as its node does: machines 0 of 8", "[node]") { CheckPart(0); }
TEST_CASE("a snapshot answers as its node does: machines 1 of 8", "[node]") { CheckPart(1); }
TEST_CASE("a snapshot answers as its node does: machines 2 of 8", "[node]") { CheckPart(2); }
TEST_CASE("a snapshot answers as its node does: machines 3 of 8", "[node]") { CheckPart(3); }
TEST_CASE("a snapshot answers as its node does: machines 4 of 8", "[node]") { CheckPart(4); }
TEST_CASE("a snapshot answers as its node does: machines 5 of 8", "[node]") { CheckPart(5); }
TEST_CASE("a snapshot answers as its node does: machines 6 of 8", "[node]") { CheckPart(6); }
TEST_CASE("a snapshot answers as its node does: machines 7 of 8", "[node]") { CheckPart(7); }

TEST_CASE("what the agent has taken and how it is configured goes along", "[node]") {
  const Node node("cases/VIA-05");
  const std::string config = node.dir().Write("config.yaml",
                                              "resources: [{name: example.org/gpu, select: "
                                              "[{vendor: \"10de\"}]}]\nguard: {override: []}\n");
  REQUIRE(node.Run({"bind", "--config", config}).exit_code == 0);
  const std::string file = node.dir().path() + "/node.tar.gz";
  TakeWhole(node.With({"snapshot", file, "--config", config}));
  const ProgramResult there = RunAgent({"plan", "-o", "json", "--root", file});
  CHECK(there.out == node.Run({"plan", "-o", "json", "--config", config}).out);
  CHECK_THAT(there.out, Catch::Contains("example.org/gpu") && Catch::Contains("\"bound\""));
  // What was taken there is released there: nothing here is asked.
  const ProgramResult released = RunAgent({"release", "-o", "json", "--root", file});
  CHECK_THAT(released.out, Catch::Contains("0000:"));
}

}  // namespace
}  // namespace vfio_agent
