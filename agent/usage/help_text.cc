#include "agent/usage/help_text.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "sysfs/proc_text.h"

namespace vfio_agent {
namespace {

constexpr size_t kIndent = 2;
constexpr size_t kWidestTerm = 34;  // of a term that its explanation stands beside
constexpr size_t kLeastText = 20;   // however narrow the terminal is

struct Term {
  std::string term;
  std::string text;
};

std::string Padded(std::string_view text, size_t width) {
  std::string padded(text);
  padded.append(width > text.size() ? width - text.size() : 0, ' ');
  return padded;
}

// Terms to the left, what they mean to the right of them.
std::string Terms(std::string_view title, const std::vector<Term>& terms, size_t width) {
  if (terms.empty()) return "";
  size_t left = 0;
  for (const Term& term : terms) {
    if (term.term.size() <= kWidestTerm) left = std::max(left, term.term.size());
  }
  const size_t column = kIndent + left + 2;
  std::string text = absl::StrFormat("\n%s:\n", title);
  for (const Term& term : terms) {
    std::string line = std::string(kIndent, ' ') + Padded(term.term, left + 2);
    if (term.term.size() > left) {
      text += std::string(kIndent, ' ') + term.term + "\n";
      line = std::string(column, ' ');
    }
    for (const std::string& part : Wrap(term.text, std::max(width, column + kLeastText) - column)) {
      // A word that is wider than its column, such as a path, begins further to the left.
      const size_t room = width > part.size() ? width - part.size() : 0;
      const bool continues = line.size() == column && line.find_first_not_of(' ') == line.npos;
      if (continues && room < column) line = std::string(std::max(room, kIndent), ' ');
      text += line + part + "\n";
      line = std::string(column, ' ');
    }
  }
  return text;
}

std::string Paragraphs(std::string_view text, size_t width) {
  std::string wrapped;
  const std::vector<std::string> paragraphs =
      absl::StrSplit(std::string(text), "\n\n", absl::SkipEmpty());
  for (const std::string& paragraph : paragraphs) {
    wrapped += "\n";
    for (const std::string& line : Wrap(paragraph, width)) wrapped += line + "\n";
  }
  return wrapped;
}

template <typename Rows>
std::vector<Term> OptionTerms(const Rows& rows) {
  std::vector<Term> terms;
  for (const OptionRow& row : rows) {
    std::string text(row.help);
    if (!row.fallback.empty()) text += absl::StrFormat(" [%s]", std::string(row.fallback));
    if (row.variable) text += absl::StrFormat(" (%s)", VariableOf(row));
    terms.push_back({OptionSynopsis(row), text});
  }
  return terms;
}

std::vector<Term> CommonTerms(const Command* command) {
  std::vector<OptionRow> rows;
  for (const OptionRow& row : CommonOptions()) {
    const bool hidden = command != nullptr &&
                        (LeavesOut(*command, row) ||
                         std::ranges::count(command->options, row.name, &OptionRow::name) > 0);
    if (!hidden) rows.push_back(row);
  }
  return OptionTerms(rows);
}

std::vector<Term> ExitTerms(std::string_view digits) {
  std::vector<Term> terms;
  for (const char digit : digits) terms.push_back({{digit}, std::string(ExitCodeHelp(digit))});
  return terms;
}

constexpr std::array<ExampleRow, 5> kOverview = {{
    {"vfio-agent plan", "what would happen on this node"},
    {"vfio-agent explain 65:00.0", "why that card can or cannot be given away"},
    {"vfio-agent bind group:26", "bind one group, whole"},
    {"vfio-agent release", "give back all that was bound"},
    {"vfio-agent help bind", "more about one command"},
}};

// Commands that get words which they do not take, and what does. $0: the word.
struct InsteadRow {
  std::string_view command;
  std::string_view text;
};
constexpr std::array<InsteadRow, 4> kInstead = {{
    {"config check", "; did you mean --config $0?"},
    {"config show", "; did you mean --config $0?"},
    {"plan",
     ": it shows all groups; `vfio-agent explain $0` tells of one, `vfio-agent bind $0` binds it"},
    {"list", "; `vfio-agent explain $0` tells of one device or group"},
}};

template <typename Rows>
std::vector<Term> ExampleTerms(const Rows& rows) {
  std::vector<Term> terms;
  for (const ExampleRow& row : rows) {
    terms.push_back({std::string(row.line), std::string(row.meaning)});
  }
  return terms;
}

}  // namespace

std::vector<std::string> Wrap(std::string_view text, size_t width) {
  std::vector<std::string> lines;
  const std::vector<std::string> words =
      absl::StrSplit(std::string(text), absl::ByAnyChar(" \n"), absl::SkipEmpty());
  for (const std::string& word : words) {
    if (lines.empty() || lines.back().size() + 1 + word.size() > width) {
      lines.push_back(word);
    } else {
      lines.back() += " " + word;
    }
  }
  return lines;
}

std::string OptionSynopsis(const OptionRow& row) {
  return absl::StrFormat(
      "%s--%s%s%s", row.letter == '\0' ? "" : absl::StrFormat("-%c, ", row.letter),
      std::string(row.name), row.value.empty() ? "" : " ", std::string(row.value));
}

std::string Synopsis(const Command& command) {
  std::string text = absl::StrFormat("vfio-agent %s [OPTION...]", std::string(command.name));
  const ArgumentRow& argument = command.argument;
  if (argument.kind.empty()) return text;
  const std::string word = std::string(argument.kind) + (argument.most > 2 ? "..." : "");
  return text + (argument.least > 0 ? " " + word : " [" + word + "]");
}

std::string WithHelp(std::string_view fault, const Command* command) {
  return absl::StrFormat("%s%s see `vfio-agent help%s%s`", std::string(fault),
                         fault.ends_with('?') ? "" : ";", command == nullptr ? "" : " ",
                         command == nullptr ? "" : std::string(command->name));
}

std::string TellInstead(const Command& command, std::string_view word) {
  const auto row = std::ranges::find(kInstead, command.name, &InsteadRow::command);
  if (row == kInstead.end()) return "";
  return absl::StrReplaceAll(std::string(row->text), {{"$0", Printable(word)}});
}

std::string ProgramHelp(size_t width) {
  std::string text = "Usage: vfio-agent COMMAND [OPTION...] [SELECTOR...]\n";
  text += Paragraphs(kPurpose, width);
  std::vector<Term> commands;
  for (const Command& command : Commands()) {
    if (!command.hidden) {
      commands.push_back({std::string(command.name), std::string(command.summary)});
    }
  }
  text += Terms("Commands", commands, width);
  text += Terms(
      "Words",
      {{"SELECTOR", ArgumentHelp(FindCommand("bind")->argument) + " (topology: just the devices)"}},
      width);
  text += Terms("Options of every command", CommonTerms(nullptr), width);
  text += Paragraphs("The settings are options as well: see `vfio-agent run --help`.", width);
  text += Terms("Examples", ExampleTerms(kOverview), width);
  return text + Terms("Exit codes", ExitTerms("01234"), width);
}

std::string CommandHelp(const Command& command, size_t width) {
  std::string text = absl::StrFormat("Usage: %s\n", Synopsis(command));
  std::string summary(command.summary);
  summary[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(summary[0])));
  text += Paragraphs(summary + ".", width) + Paragraphs(command.manual, width);
  if (!command.argument.kind.empty()) {
    text += Terms("Words", {{std::string(command.argument.kind), ArgumentHelp(command.argument)}},
                  width);
  }
  text += Terms("Options", OptionTerms(command.options), width);
  text += Terms("Options of every command", CommonTerms(&command), width);
  if (command.holds_signals) {
    text += Terms("Settings (also keys of the file; flag, variable, file, default, in this order)",
                  OptionTerms(SettingOptions()), width);
  } else if (command.with_session != nullptr) {
    text += Paragraphs("The settings are options as well: see `vfio-agent run --help`.", width);
  }
  text += Terms("Examples", ExampleTerms(command.examples), width);
  return text + Terms("Exit codes", ExitTerms(command.exit_codes), width);
}

}  // namespace vfio_agent
