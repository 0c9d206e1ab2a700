// The command table: all that the command line has, as values. The parser, the help, the man page
// and the completion are made from it, so none of them can lag behind the others.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/session.h"

namespace vfio_agent {

// What a word on the command line may be: one of "a|b|c", or of a kind: "FILE", "DIR", "SELECTOR",
// "COMMAND", or one that only the command itself understands, such as "DURATION".
using WordKind = std::string_view;

struct OptionRow {
  std::string_view name;  // "output", for --output
  char letter = '\0';     // 'o', for -o
  WordKind value;         // empty: it takes none
  std::string_view help;
  // Empty: it is a setting, kept for the settings' own table.
  void (*set)(Invocation& invocation, const std::string& value) = nullptr;
  std::string_view fallback;
  bool variable = false;  // VFIO_AGENT_<NAME> counts as well
};

struct ArgumentRow {
  WordKind kind;  // empty: the command takes none
  size_t least = 0;
  size_t most = 0;
  std::string_view help;
  std::string_view meaning;  // of a word that several commands spell alike; may be empty
};

struct ExampleRow {
  std::string_view line;  // as it is typed
  std::string_view meaning;
};

struct Command {
  std::string_view name;     // "plan", "config check"
  std::string_view summary;  // half a sentence, for tables
  std::string_view manual;   // what the summary leaves open: paragraphs, an empty line between
  ArgumentRow argument;
  std::span<const OptionRow> options;  // its own; one of these hides a common one of that name
  std::span<const ExampleRow> examples;
  std::string_view exit_codes = "012";  // those that it can end with, as digits
  // One of the two: most commands need the configuration and a root.
  int (*with_session)(Session& session) = nullptr;
  int (*alone)(const Invocation& invocation) = nullptr;
  // Before the configuration is read. What fails stops nothing, and is told.
  absl::Status (*before)() = nullptr;
  bool holds_signals = false;  // SIGTERM, SIGINT and SIGHUP wait until it takes them
  bool hidden = false;         // for scripts
  bool one_form = false;       // its answer has no other: --output is no option of it
};

// The program in one sentence.
inline constexpr std::string_view kPurpose =
    "Gives whole PCI devices to virtual machines on Kubernetes.";

inline constexpr std::string_view kSelectorHelp =
    "an address (0000:65:00.0, or 65:00.0 when unambiguous), group:26, an id (10de:2330), a vendor "
    "(10de:), a resource name or the uuid of a mediated device";
inline constexpr std::string_view kWholeGroups = "it means the whole groups that it touches";

std::span<const Command> Commands();
// Null where there is none of that name.
const Command* FindCommand(std::string_view name);
// Of those that are for people.
std::vector<std::string> CommandNames();

// What a word after --output means; a table where it means nothing.
Output OutputNamed(std::string_view word);

// How the argument is spelt, and what it means.
std::string ArgumentHelp(const ArgumentRow& row);

// Options of every command that are no settings.
std::span<const OptionRow> CommonOptions();
// The settings as options.
std::vector<OptionRow> SettingOptions();
// True for a common option that means nothing to this command.
bool LeavesOut(const Command& command, const OptionRow& row);
// All that may be written after the command, its own first; those of no command: common ones and
// settings.
std::vector<OptionRow> OptionsOf(const Command* command);
// That of "--output" or "-o".
std::optional<OptionRow> FindOption(const Command* command, std::string_view word);

// The words of a kind that lists them; empty for any other.
std::vector<std::string> ChoicesOf(WordKind kind);

// "VFIO_AGENT_UNBIND_TIMEOUT"; empty where no variable counts.
std::string VariableOf(const OptionRow& row);

// "0: done" and so on, in words for people.
std::string_view ExitCodeHelp(char digit);

}  // namespace vfio_agent
