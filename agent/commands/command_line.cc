#include "agent/commands/command_line.h"

#include <CLI/CLI.hpp>
#include <deque>
#include <iostream>

#include "absl/strings/str_format.h"
#include "agent/commands/command_table.h"
#include "agent/commands/commands.h"
#include "agent/daemon/report.h"
#include "agent/daemon/signals.h"
#include "agent/exit_code.h"
#include "agent/log.h"
#include "agent/snapshot/replay_root.h"
#include "agent/text/terminal.h"
#include "agent/usage/help_text.h"
#include "agent/usage/suggest.h"
#include "agent/usage/words.h"
#include "sysfs/proc_text.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

struct Given {
  const OptionRow* row = nullptr;
  std::string value;
};

// What the parser found, before any of it means something.
struct Parsed {
  const Command* command = nullptr;
  std::string first;  // of a command of two words, where the second is missing
  std::vector<Given> options;
  std::vector<std::string> arguments;
  std::vector<std::string> strange;  // words that are no option and no argument
};

// The parser and the rows that it points into.
struct Parser {
  CLI::App app{std::string(kPurpose), "vfio-agent"};
  std::deque<OptionRow> rows;
  std::map<const CLI::App*, const Command*> commands;
  std::map<std::string, CLI::App*, std::less<>> firsts;  // "config"
  Parsed parsed;
};

void AddOption(CLI::App& app, const OptionRow& option, Parser& parser) {
  const OptionRow& row = parser.rows.emplace_back(option);
  std::string names = absl::StrFormat("--%s", std::string(row.name));
  if (row.letter != '\0') names += absl::StrFormat(",-%c", row.letter);
  std::vector<Given>& given = parser.parsed.options;
  if (row.value.empty()) {
    app.add_flag_callback(names, [&given, &row] { given.push_back({&row, ""}); });
    return;
  }
  app.add_option_function<std::string>(names,
                                       [&given, &row](const std::string& value) {
                                         given.push_back({&row, value});
                                       })
      ->type_name(std::string(row.value))
      ->take_last();
}

// What a command does not know itself falls through to the program: common options may stand before
// the command and after it. Checks and help are our own, from the table.
void SetUp(CLI::App& app) {
  app.set_help_flag();
  app.allow_extras();
  app.fallthrough();
  app.require_subcommand(0, 1);
}

CLI::App* ParentOf(const Command& command, Parser& parser, std::string& last) {
  const size_t blank = command.name.find(' ');
  last = command.name.substr(blank == std::string_view::npos ? 0 : blank + 1);
  if (blank == std::string_view::npos) return &parser.app;
  const std::string first(command.name.substr(0, blank));
  CLI::App*& parent = parser.firsts[first];
  if (parent == nullptr) {
    parent = parser.app.add_subcommand(first);
    SetUp(*parent);
  }
  return parent;
}

void AddCommand(const Command& command, Parser& parser) {
  std::string last;
  CLI::App* const parent = ParentOf(command, parser, last);
  CLI::App* const sub = parent->add_subcommand(last);
  SetUp(*sub);
  for (const OptionRow& row : command.options) AddOption(*sub, row, parser);
  if (!command.argument.kind.empty()) sub->add_option("WORDS", parser.parsed.arguments);
  parser.commands[sub] = &command;
}

// "--guest: 1 required libvirt|kubevirt missing", in words that tell what to do.
std::string WithoutValue(std::string_view error) {
  constexpr std::string_view kBefore = ": 1 required ", kAfter = " missing";
  const size_t at = error.find(kBefore);
  if (at == std::string_view::npos || !error.ends_with(kAfter)) return std::string(error);
  std::string_view value = error.substr(at + kBefore.size());
  value.remove_suffix(kAfter.size());
  return absl::StrFormat("%s wants a value: %s", std::string(error.substr(0, at)),
                         std::string(value));
}

// The error of a parse; "" where there is none.
std::string Parse(int argc, char** argv, Parser& parser) {
  SetUp(parser.app);
  for (const OptionRow& row : OptionsOf(nullptr)) AddOption(parser.app, row, parser);
  for (const Command& command : Commands()) AddCommand(command, parser);
  std::vector<std::string> words = SplitEmptyValues({argv + std::min(argc, 1), argv + argc});
  std::ranges::reverse(words);  // it begins with the last one
  try {
    parser.app.parse(std::move(words));
  } catch (const CLI::ArgumentMismatch& error) {
    return WithoutValue(error.what());
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  Parsed& parsed = parser.parsed;
  for (const auto& [app, command] : parser.commands) {
    if (app->parsed()) parsed.command = command;
  }
  for (const auto& [first, app] : parser.firsts) {
    if (app->parsed()) parsed.first = first;
  }
  parsed.strange = parser.app.remaining(true);
  std::erase(parsed.strange, "--");  // it is among them where a command has arguments
  return "";
}

std::vector<std::string> OptionNames(const Command* command) {
  std::vector<std::string> names;
  for (const OptionRow& row : OptionsOf(command)) {
    names.push_back(absl::StrFormat("--%s", std::string(row.name)));
  }
  return names;
}

std::string NameOf(const Command* command) {
  return command == nullptr ? "vfio-agent" : std::string(command->name);
}

std::string StrangeWord(const Parsed& parsed, const std::string& word) {
  const std::string shown = Printable(word);
  if (word.starts_with('-')) {
    const std::string name = word.substr(0, word.find('='));
    if (FindOption(parsed.command, name)) {
      return absl::StrFormat("%s is an option of %s: it stands behind that word", name,
                             NameOf(parsed.command));
    }
    return absl::StrFormat("%s has no option '%s'%s", NameOf(parsed.command), shown,
                           DidYouMean(name, OptionNames(parsed.command)));
  }
  if (parsed.command != nullptr) {
    return absl::StrFormat("%s takes no word '%s'%s", NameOf(parsed.command), shown,
                           TellInstead(*parsed.command, word));
  }
  const std::string start = parsed.first.empty() ? "" : parsed.first + " ";
  return absl::StrFormat("no command is called '%s%s'%s", start, shown,
                         DidYouMean(start + word, CommandNames()));
}

// A word that is none of the choices; "" where it is one, or anything goes.
std::string WrongChoice(const std::string& what, WordKind kind, const std::string& word) {
  const std::vector<std::string> choices = ChoicesOf(kind);
  if (choices.empty() || std::ranges::count(choices, word) > 0) return "";
  return absl::StrFormat("%s: '%s' is none of %s%s", what, Printable(word), std::string(kind),
                         DidYouMean(word, choices));
}

// What is wrong with the words for themselves; "" where nothing is.
std::string FindFault(const Parsed& parsed) {
  if (!parsed.strange.empty()) return StrangeWord(parsed, parsed.strange.front());
  for (const Given& given : parsed.options) {
    // The parser took it for the program's own.
    if (parsed.command != nullptr && LeavesOut(*parsed.command, *given.row)) {
      return StrangeWord(parsed, absl::StrFormat("--%s", std::string(given.row->name)));
    }
    // The settings' own table tells what it wants, and from where it came.
    if (given.row->set == nullptr) continue;
    const std::string what = absl::StrFormat("--%s", std::string(given.row->name));
    if (std::string fault = WrongChoice(what, given.row->value, given.value); !fault.empty()) {
      return fault;
    }
  }
  if (parsed.command == nullptr) return "";
  const ArgumentRow& argument = parsed.command->argument;
  for (const std::string& word : parsed.arguments) {
    if (std::string fault = WrongChoice(NameOf(parsed.command), argument.kind, word);
        !fault.empty()) {
      return fault + (fault.ends_with('?') ? "" : TellInstead(*parsed.command, word));
    }
  }
  if (parsed.arguments.size() <= argument.most) return "";
  return absl::StrFormat("%s takes no word '%s' as well", NameOf(parsed.command),
                         Printable(parsed.arguments[argument.most]));
}

// What is missing; only where no help was asked for.
std::string FindMissing(const Parsed& parsed) {
  if (parsed.command == nullptr) {
    return absl::StrFormat("a command is missing%s%s", parsed.first.empty() ? "" : " after ",
                           parsed.first);
  }
  const ArgumentRow& argument = parsed.command->argument;
  if (parsed.arguments.size() >= argument.least) return "";
  return absl::StrFormat("%s: %s is missing", NameOf(parsed.command), std::string(argument.kind));
}

int Refuse(const std::string& fault, const Command* command) {
  PrintError(WithHelp(fault, command));
  return kExitUsage;
}

Invocation MakeInvocation(const Parsed& parsed) {
  Invocation invocation;
  // Those of the settings are for the settings' own table.
  for (const OptionRow& row : CommonOptions()) {
    if (!row.variable) continue;
    const char* const value =
        std::getenv(VariableOf(row).c_str());  // NOLINT(concurrency-mt-unsafe)
    if (value != nullptr) row.set(invocation, value);
  }
  for (const Given& given : parsed.options) {
    if (given.row->set != nullptr) {
      given.row->set(invocation, given.value);
    } else {
      invocation.flags[std::string(given.row->name)] = given.value;
    }
  }
  invocation.arguments = parsed.arguments;
  return invocation;
}

int RunBelowRoot(const Invocation& invocation, const Command& command) {
  if (command.holds_signals) HoldSignals();
  const absl::Status before = command.before != nullptr ? command.before() : absl::OkStatus();
  const absl::StatusOr<std::unique_ptr<Session>> session = Session::Open(invocation);
  if (!session.ok()) {
    PrintError(Message(session.status()));
    return absl::IsInvalidArgument(session.status()) ? kExitUsage : kExitFailed;
  }
  const Settings& settings = (*session)->settings();
  SetUpLog(settings.log_level, settings.log_format);
  if (!before.ok()) Log(Note(Message(before)));
  return command.with_session(**session);
}

int RunWithSession(Invocation invocation, const Command& command) {
  return WithRoot(invocation, [&] { return RunBelowRoot(invocation, command); });
}

// --help: of whatever was named so far.
int HelpOn(const Parsed& parsed) {
  Invocation help;
  if (parsed.command != nullptr) {
    help.arguments = {NameOf(parsed.command)};
  } else if (!parsed.first.empty()) {
    help.arguments = {parsed.first};
  }
  return HelpCommand(help);
}

}  // namespace

int RunMain(int argc, char** argv) {
  Parser parser;
  if (const std::string fault = Parse(argc, argv, parser); !fault.empty()) {
    return Refuse(fault, parser.parsed.command);
  }
  const Parsed& parsed = parser.parsed;
  if (const std::string fault = FindFault(parsed); !fault.empty()) {
    return Refuse(fault, parsed.command);
  }
  const Invocation invocation = MakeInvocation(parsed);
  if (invocation.help) return HelpOn(parsed);
  if (invocation.version) return VersionCommand(invocation);
  if (const std::string missing = FindMissing(parsed); !missing.empty()) {
    return Refuse(missing, parsed.command);
  }
  if (parsed.command->alone != nullptr) return parsed.command->alone(invocation);
  return RunWithSession(invocation, *parsed.command);
}

}  // namespace vfio_agent
