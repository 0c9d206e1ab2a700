#include "agent/daemon/answers.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "agent/files.h"
#include "sysfs/status.h"
#include "test/agent/program.h"

namespace vfio_agent {
namespace {

const Answers kTwo = {{"0000:11:00.0",
                       {.resource = "nvidia.com/X",
                        .group = 29,
                        .addresses = {"0000:11:00.0"},
                        .nodes = {"/dev/vfio/vfio", "/dev/vfio/29"}}},
                      {"0000:12:00.0", {.resource = "nvidia.com/Y", .group = 30}}};

TEST_CASE("R27, T7: answers survive a restart", "[agent]") {
  const ScratchDir dir;
  const AnswersFile file(dir.path() + "/state");
  REQUIRE(file.Read().ok());
  CHECK(file.Read()->empty());
  REQUIRE(file.Write(kTwo).ok());
  REQUIRE(file.Read().ok());
  CHECK(*file.Read() == kTwo);
  CHECK(std::filesystem::status(file.path()).permissions() ==
        (std::filesystem::perms::owner_read | std::filesystem::perms::owner_write));
}

TEST_CASE("a file of answers that cannot be understood is set aside with its reason", "[agent]") {
  const ScratchDir dir;
  const AnswersFile file(dir.path());
  struct Row {
    std::string text, why;
  };
  const Row row = GENERATE(
      Row{"", "no JSON object"}, Row{"[]", "no JSON object"}, Row{"{}", "no JSON object"},
      Row{R"({"schema":"vfio-agent/answers/v2","answers":[]})", "schema 'vfio-agent/answers/v2'"},
      Row{R"({"schema":"vfio-agent/answers/v1"})", "no list"},
      Row{R"({"schema":"vfio-agent/answers/v1","answers":[1]})", "no answer"},
      Row{R"({"schema":"vfio-agent/answers/v1","answers":[{"unit":"a","group":"x"}]})",
          "no answer"});
  std::ofstream(file.path()) << row.text;
  CHECK(absl::IsDataLoss(file.Look().status()));  // which leaves it where it is
  const auto answers = file.Read();
  CHECK(absl::IsDataLoss(answers.status()));
  CHECK_THAT(Message(answers.status()), Catch::Contains(row.why) && Catch::Contains(".aside"));
  CHECK(std::filesystem::exists(file.path() + ".aside"));
  REQUIRE(file.Read().ok());
  CHECK(file.Read()->empty());
}

TEST_CASE("what a small file takes to be read does not depend on the limit", "[agent]") {
  const ScratchDir dir;
  const std::string path = dir.Write("small", "text");
  const auto text = ReadSmallFile(path, size_t{1} << 46);
  REQUIRE(text.ok());
  CHECK(*text == "text");
  CHECK(*ReadSmallFile(path, 2) == "te");
}

}  // namespace
}  // namespace vfio_agent
