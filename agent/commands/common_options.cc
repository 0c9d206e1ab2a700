// The options that every command has, and what a table of options can be asked.
#include <algorithm>
#include <array>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "agent/commands/command_table.h"

namespace vfio_agent {
namespace {

void SetOutput(Invocation& invocation, const std::string& word) {
  invocation.output = OutputNamed(word);
}

void SetColour(Invocation& invocation, const std::string& word) {
  invocation.colour = word == "always"  ? Colour::kAlways
                      : word == "never" ? Colour::kNever
                                        : Colour::kAuto;
}

constexpr std::array<OptionRow, 6> kCommon = {{
    {.name = "config",
     .value = "FILE",
     .help = "configuration; a missing default file means the built-in defaults, a named file must "
             "exist",
     .set = [](Invocation& invocation, const std::string& file) { invocation.config_file = file; },
     .fallback = kDefaultConfigFile,
     .variable = true},
    {.name = "root",
     .value = "PATH",
     .help =
         "read PATH/sys, PATH/proc and PATH/dev instead of the host's; a file is a snapshot, which "
         "is unpacked below TMPDIR for as long as the command runs",
     .set = [](Invocation& invocation, const std::string& dir) { invocation.root = dir; },
     .fallback = "/",
     .variable = true},
    {.name = "output",
     .letter = 'o',
     .value = "table|wide|json|yaml",
     .help = "form of the answer",
     .set = SetOutput,
     .fallback = "table"},
    {.name = "color",
     .value = "auto|always|never",
     .help = "colours in tables; auto: on a terminal, unless NO_COLOR is set",
     .set = SetColour,
     .fallback = "auto"},
    {.name = "help",
     .letter = 'h',
     .help = "print the help of the program or of the command",
     .set = [](Invocation& invocation, const std::string&) { invocation.help = true; }},
    {.name = "version",
     .help = "print the version",
     .set = [](Invocation& invocation, const std::string&) { invocation.version = true; }},
}};

constexpr std::array<std::pair<std::string_view, Output>, 6> kOutputs = {{
    {"table", Output::kTable},
    {"wide", Output::kWide},
    {"json", Output::kJson},
    {"yaml", Output::kYaml},
    {"svg", Output::kSvg},
    {"dot", Output::kDot},
}};

}  // namespace

Output OutputNamed(std::string_view word) {
  const auto found = std::ranges::find(kOutputs, word, &std::pair<std::string_view, Output>::first);
  return found == kOutputs.end() ? Output::kTable : found->second;
}

std::span<const OptionRow> CommonOptions() { return kCommon; }

std::vector<OptionRow> SettingOptions() {
  std::vector<OptionRow> options;
  for (const SettingRow& row : SettingRows()) {
    options.push_back({.name = row.flag,
                       .value = row.value,
                       .help = row.help,
                       .fallback = row.fallback,
                       .variable = true});
  }
  return options;
}

std::string ArgumentHelp(const ArgumentRow& row) {
  return absl::StrFormat("%s%s%s", std::string(row.help), row.meaning.empty() ? "" : "; ",
                         std::string(row.meaning));
}

bool LeavesOut(const Command& command, const OptionRow& row) {
  return command.one_form && row.name == "output";
}

std::vector<OptionRow> OptionsOf(const Command* command) {
  std::vector<OptionRow> options;
  const auto add = [&options](const OptionRow& row) {
    if (std::ranges::count(options, row.name, &OptionRow::name) == 0) options.push_back(row);
  };
  if (command != nullptr) std::ranges::for_each(command->options, add);
  for (const OptionRow& row : CommonOptions()) {
    if (command == nullptr || !LeavesOut(*command, row)) add(row);
  }
  std::ranges::for_each(SettingOptions(), add);
  return options;
}

std::optional<OptionRow> FindOption(const Command* command, std::string_view word) {
  for (const OptionRow& row : OptionsOf(command)) {
    const bool is_long = word == absl::StrFormat("--%s", std::string(row.name));
    const bool is_short = row.letter != '\0' && word == absl::StrFormat("-%c", row.letter);
    if (is_long || is_short) return row;
  }
  return std::nullopt;
}

std::vector<std::string> ChoicesOf(WordKind kind) {
  if (kind.find('|') == WordKind::npos) return {};
  return absl::StrSplit(std::string(kind), '|');
}

std::string VariableOf(const OptionRow& row) {
  return row.variable ? VariableOfFlag(row.name) : "";
}

std::string_view ExitCodeHelp(char digit) {
  switch (digit) {
    case '0':
      return "done";
    case '1':
      return "it was tried and failed";
    case '2':
      return "the command line or the configuration";
    case '3':
      return "something that was asked for was refused (plan, explain: only with --exit-code); "
             "doctor: a check failed; kubevirt --diff: something would not start";
    case '4':
      return "there is something to do";
    default:
      return "";
  }
}

}  // namespace vfio_agent
