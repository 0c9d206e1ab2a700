// The examples of the command table are true: each is understood, and those that a machine file is
// enough for end as they say.
#include "absl/strings/str_split.h"
#include "agent/commands/command_table.h"
#include "test/agent/node.h"

namespace vfio_agent {
namespace {

using Words = std::vector<std::string>;

// As a shell would split it, up to what redirects; '' is an empty word.
Words WordsOf(std::string_view line) {
  Words words;
  const Words parts = absl::StrSplit(std::string(line), ' ');
  for (const std::string& part : parts) {
    if (part == ">" || part == "|") break;
    words.push_back(part == "''" ? "" : part);
  }
  REQUIRE(words.front() == "vfio-agent");
  words.erase(words.begin());
  return words;
}

// With the files of this test for those of the example.
Words Localized(Words words, const Node& node) {
  for (std::string& word : words) {
    if (word == "/copy") word = node.root();
    if (word == "cr.yaml")
      word = node.dir().Write(
          "cr.yaml",
          "apiVersion: kubevirt.io/v1\nkind: KubeVirt\nmetadata: {name: kubevirt}\nspec: {}\n");
    if (word == "node.tar.gz") word = node.dir().path() + "/node.tar.gz";
    if (word == "new.yaml") word = node.dir().Write("new.yaml", "bind: {parallel: 3}\n");
  }
  return words;
}

TEST_CASE("every example is understood", "[usage]") {
  const Node node("hgx-8gpu");
  for (const Command& command : Commands()) {
    for (const ExampleRow& row : command.examples) {
      CAPTURE(std::string(row.line));
      Words words = Localized(WordsOf(row.line), node);
      words.push_back("--help");
      const ProgramResult result = RunAgent(words);
      CHECK(result.exit_code == 0);
      CHECK(result.err.empty());
      CHECK_THAT(result.out, Catch::StartsWith("Usage: vfio-agent " + std::string(command.name)));
    }
  }
}

// A daemon stays, and status and health need one; watching ends with a signal only.
bool EndsByItself(const Command& command, std::string_view line) {
  return !command.holds_signals && command.name != "status" && command.name != "health" &&
         line.find("--watch") == std::string_view::npos;
}

TEST_CASE("every example that ends by itself ends as its command says", "[usage]") {
  const Node node("hgx-8gpu");
  for (const Command& command : Commands()) {
    for (const ExampleRow& row : command.examples) {
      if (!EndsByItself(command, row.line)) continue;
      CAPTURE(std::string(row.line));
      const Words words = Localized(WordsOf(row.line), node);
      const bool has_root = std::ranges::count(words, "--root") > 0;
      const ProgramResult result = has_root ? RunAgent(words) : node.Run(words);
      INFO(result.out << result.err);
      CHECK(result.exit_code != 1);
      CHECK(result.exit_code != 2);
      CHECK(command.exit_codes.find(static_cast<char>('0' + result.exit_code)) !=
            std::string_view::npos);
      CHECK_FALSE(result.out.empty());
    }
  }
}

TEST_CASE("an unknown selector of an example would be told", "[usage]") {
  const Node node("hgx-8gpu");
  CHECK(node.Run({"explain", "group:9999"}).exit_code == 2);
}

}  // namespace
}  // namespace vfio_agent
