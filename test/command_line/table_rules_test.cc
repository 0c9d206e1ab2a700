// What must hold for each row of the command table.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <set>

#include "agent/commands/command_table.h"
#include "agent/usage/help_text.h"

namespace vfio_agent {
namespace {

bool IsPlain(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= ' ' && c <= '~') || c == '\n'; });
}

TEST_CASE("a command runs with a session or alone, and ends with codes that have a meaning",
          "[usage]") {
  std::set<std::string_view> names;
  for (const Command& command : Commands()) {
    CAPTURE(std::string(command.name));
    CHECK(names.insert(command.name).second);
    CHECK((command.with_session == nullptr) != (command.alone == nullptr));
    CHECK(FindCommand(command.name) == &command);
    CHECK_FALSE(command.summary.empty());
    CHECK(IsPlain(command.manual));
    CHECK(command.argument.kind.empty() == (command.argument.most == 0));
    CHECK(command.argument.least <= command.argument.most);
    for (const char digit : command.exit_codes) CHECK_FALSE(ExitCodeHelp(digit).empty());
  }
  CHECK(ExitCodeHelp('7').empty());
}

TEST_CASE("every command that people type has an example, which begins with it", "[usage]") {
  for (const Command& command : Commands()) {
    CAPTURE(std::string(command.name));
    CHECK(command.examples.empty() == command.hidden);
    for (const ExampleRow& row : command.examples) {
      CHECK(row.line.starts_with("vfio-agent " + std::string(command.name)));
      CHECK_FALSE(row.meaning.empty());
    }
  }
}

TEST_CASE("no two options of a command have the same name or letter", "[usage]") {
  for (const Command& command : Commands()) {
    CAPTURE(std::string(command.name));
    std::set<std::string_view> names;
    std::set<char> letters;
    for (const OptionRow& row : OptionsOf(&command)) {
      CAPTURE(std::string(row.name));
      CHECK(names.insert(row.name).second);
      if (row.letter != '\0') CHECK(letters.insert(row.letter).second);
      CHECK(IsPlain(row.help));
      CHECK_FALSE(row.help.empty());
    }
  }
}

TEST_CASE("a fallback is one of the choices, where there are choices", "[usage]") {
  for (const OptionRow& row : OptionsOf(nullptr)) {
    CAPTURE(std::string(row.name));
    const std::vector<std::string> choices = ChoicesOf(row.value);
    if (!choices.empty()) CHECK(std::ranges::count(choices, row.fallback) == 1);
  }
}

TEST_CASE("each option that a variable stands for has its misspelling told", "[usage]") {
  for (const OptionRow& row : OptionsOf(nullptr)) {
    if (!row.variable) continue;
    std::string misspelt = VariableOf(row);
    std::swap(misspelt.end()[-1], misspelt.end()[-2]);
    CAPTURE(misspelt);
    ::setenv(misspelt.c_str(), "x", 1);  // NOLINT(concurrency-mt-unsafe)
    const std::vector<std::string> told = TellMisspeltVariables();
    ::unsetenv(misspelt.c_str());  // NOLINT(concurrency-mt-unsafe)
    REQUIRE(told.size() == 1);
    CHECK_THAT(told.front(), Catch::StartsWith(misspelt) && Catch::Contains(VariableOf(row)));
  }
}

TEST_CASE("a setting takes each of the words that its row lists, and tells what it wants",
          "[usage]") {
  for (const SettingRow& row : SettingRows()) {
    CAPTURE(row.flag);
    Settings settings;
    CHECK(row.set(settings, row.fallback).ok());
    for (const std::string& choice : ChoicesOf(row.value)) {
      CAPTURE(choice);
      CHECK(row.set(settings, choice).ok());
    }
    if (!ChoicesOf(row.value).empty()) CHECK_FALSE(row.set(settings, "spoons").ok());
  }
}

TEST_CASE("a command whose answer has one form only has no option for it", "[usage]") {
  for (const Command& command : Commands()) {
    CAPTURE(std::string(command.name));
    const std::vector<OptionRow> options = OptionsOf(&command);
    CHECK(std::ranges::count(options, "output", &OptionRow::name) == (command.one_form ? 0 : 1));
    const bool in_help = CommandHelp(command, 100).find("--output ") != std::string::npos;
    CHECK(in_help != command.one_form);
  }
  CHECK(FindCommand("help")->one_form);
  CHECK(FindCommand("run")->one_form);
  CHECK_FALSE(FindCommand("config show")->one_form);
}

TEST_CASE("an option of a command hides the common one of that name", "[usage]") {
  const OptionRow own = {.name = "output", .letter = 'o', .value = "svg|dot", .help = "form"};
  Command command = *FindCommand("plan");
  command.options = {&own, 1};
  const std::vector<OptionRow> options = OptionsOf(&command);
  CHECK(std::ranges::count(options, "output", &OptionRow::name) == 1);
  CHECK(std::ranges::find(options, "output", &OptionRow::name)->value == "svg|dot");
}

}  // namespace
}  // namespace vfio_agent
