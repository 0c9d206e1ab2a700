// The help texts and the man page have all that the table has.
#include "agent/usage/help_text.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "agent/usage/manual.h"
#include "agent/usage/shell_scripts.h"

namespace vfio_agent {
namespace {

size_t Longest(const std::string& text) {
  size_t longest = 0;
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  for (const std::string& line : lines) longest = std::max(longest, line.size());
  return longest;
}

TEST_CASE("text is wrapped at blanks, and a word that is too long stands alone", "[usage]") {
  CHECK(Wrap("one two three", 7) == std::vector<std::string>{"one two", "three"});
  CHECK(Wrap("a incomprehensible b", 5) == std::vector<std::string>{"a", "incomprehensible", "b"});
  CHECK(Wrap(" one\n two ", 80) == std::vector<std::string>{"one two"});
  CHECK(Wrap("", 80).empty());
}

TEST_CASE("the help of a command has its options, their defaults, examples and exit codes",
          "[usage]") {
  const std::string help = CommandHelp(*FindCommand("kubevirt"), 100);
  CHECK_THAT(help, Catch::StartsWith("Usage: vfio-agent kubevirt [OPTION...] [SELECTOR...]\n") &&
                       Catch::Contains("  --diff FILE ") &&
                       Catch::Contains("permittedHostDevices") &&
                       Catch::Contains("-o, --output table|wide|json|yaml") &&
                       Catch::Contains("(VFIO_AGENT_CONFIG)") &&
                       Catch::Contains("vfio-agent kubevirt --diff cr.yaml") &&
                       Catch::Contains("  3  something that was asked for was refused"));
  CHECK_THAT(help, !Catch::Contains("  4  ") && !Catch::Contains("--unbind-timeout"));
  CHECK_THAT(CommandHelp(*FindCommand("run"), 100),
             Catch::Contains("--unbind-timeout DURATION") &&
                 Catch::Contains("(VFIO_AGENT_UNBIND_TIMEOUT)"));
}

TEST_CASE("exit code 3 is told for the commands that mean something else by it", "[usage]") {
  const auto flat = [](const std::string& text) {
    std::string line = absl::StrReplaceAll(text, {{"\n", " "}, {"\\-", "-"}});
    while (absl::StrReplaceAll({{"  ", " "}}, &line) > 0) continue;
    return line;
  };
  for (const std::string& text :
       {CommandHelp(*FindCommand("doctor"), 80), CommandHelp(*FindCommand("kubevirt"), 80),
        ProgramHelp(80), ManualPage()}) {
    CHECK_THAT(flat(text),
               Catch::Contains("refused (plan, explain: only with --exit-code); doctor: "
                               "a check failed; kubevirt --diff: something would not"));
  }
}

TEST_CASE("config check promises the first error, not all of them", "[usage]") {
  CHECK_THAT(CommandHelp(*FindCommand("config check"), 100),
             Catch::Contains("Tells the first error, with file, line, column"));
}

TEST_CASE("a word that another option or command takes is told with it", "[usage]") {
  CHECK(TellInstead(*FindCommand("config check"), "a.yaml") == "; did you mean --config a.yaml?");
  CHECK_THAT(TellInstead(*FindCommand("plan"), "10de:"),
             Catch::Contains("`vfio-agent explain 10de:`"));
  CHECK(TellInstead(*FindCommand("list"), "\x1b[31m").find('\x1b') == std::string::npos);
  CHECK(TellInstead(*FindCommand("doctor"), "10de:").empty());
}

TEST_CASE("a selector means whole groups, but of topology just the devices", "[usage]") {
  for (const char* command : {"bind", "release", "explain", "kubevirt"}) {
    CAPTURE(command);
    CHECK_THAT(CommandHelp(*FindCommand(command), 1000), Catch::Contains("the whole groups"));
  }
  const std::string topology = CommandHelp(*FindCommand("topology"), 1000);
  CHECK_THAT(topology,
             Catch::Contains("just the devices that it names") && !Catch::Contains("whole groups"));
  for (const std::string& text : {ProgramHelp(1000), ManualPage()}) {
    CHECK_THAT(absl::StrReplaceAll(text, {{"\n", " "}}),
               Catch::Contains("whole groups that it touches (topology: just the devices)"));
  }
}

TEST_CASE("a selector may be the uuid of a mediated device", "[usage]") {
  for (const char* command : {"bind", "release", "explain", "kubevirt"}) {
    CAPTURE(command);
    CHECK_THAT(CommandHelp(*FindCommand(command), 1000),
               Catch::Contains("the uuid of a mediated device"));
  }
  CHECK_THAT(ProgramHelp(1000), Catch::Contains("the uuid of a mediated device"));
}

TEST_CASE("help fits the terminal", "[usage]") {
  const size_t width = GENERATE(size_t{80}, size_t{100});
  CAPTURE(width);
  for (const Command& command : Commands()) {
    CAPTURE(std::string(command.name));
    const std::string help = CommandHelp(command, width);
    // An example is a line for a shell: it is not broken.
    CHECK(Longest(help.substr(0, help.find("\nExamples:"))) <= width);
  }
  CHECK(Longest(ProgramHelp(width)) <= width);
}

TEST_CASE("however narrow the terminal is, help ends", "[usage]") {
  CHECK(CommandHelp(*FindCommand("run"), 1).size() > 1000);
}

TEST_CASE("the overview names every command that people type, and the manual all there is",
          "[usage]") {
  const std::string overview = ProgramHelp(100);
  const std::string manual = absl::StrReplaceAll(ManualPage(), {{"\\-", "-"}});
  for (const Command& command : Commands()) {
    CAPTURE(std::string(command.name));
    const bool named = overview.find("  " + std::string(command.name) + " ") != std::string::npos;
    CHECK(named != command.hidden);
    if (command.hidden) continue;
    CHECK_THAT(manual, Catch::Contains("\n.B " + std::string(command.name)));
    for (const OptionRow& row : OptionsOf(&command)) {
      CHECK_THAT(manual, Catch::Contains("--" + std::string(row.name)));
    }
  }
  CHECK_THAT(manual, !Catch::Contains("complete LINE"));
}

TEST_CASE("no text of the table is taken for markup", "[usage]") {
  const std::string manual = ManualPage();
  const std::vector<std::string> lines = absl::StrSplit(manual, '\n');
  for (const std::string& line : lines) {
    CAPTURE(line);
    const bool text = !line.starts_with('.');
    if (text) CHECK_FALSE(line.starts_with('\''));
    // Each bold part of a line of text ends.
    CHECK(
        (std::string_view(line).find("`") == std::string_view::npos || line.starts_with(".\\\"")));
  }
}

TEST_CASE("there is a script for each shell that the table lists", "[usage]") {
  for (const std::string& shell : ChoicesOf(FindCommand("completion")->argument.kind)) {
    CAPTURE(shell);
    CHECK_THAT(std::string(CompletionScript(shell)),
               Catch::Contains("vfio-agent for " + shell) && Catch::Contains("complete --"));
  }
  CHECK(CompletionScript("csh").empty());
}

}  // namespace
}  // namespace vfio_agent
