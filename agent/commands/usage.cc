// help, completion and complete: what the program says of itself.
#include <iostream>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "agent/commands/command_table.h"
#include "agent/commands/commands.h"
#include "agent/exit_code.h"
#include "agent/text/terminal.h"
#include "agent/usage/complete.h"
#include "agent/usage/help_text.h"
#include "agent/usage/manual.h"
#include "agent/usage/node_words.h"
#include "agent/usage/shell_scripts.h"
#include "agent/usage/suggest.h"
#include "sysfs/proc_text.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

// Of "config" those that begin with it; of a command's name just that one.
std::vector<const Command*> CommandsOf(const std::string& words) {
  std::vector<const Command*> found;
  if (const Command* command = FindCommand(words)) return {command};
  for (const Command& command : Commands()) {
    if (command.name.starts_with(words + " ")) found.push_back(&command);
  }
  return found;
}

std::vector<Candidate> FindCandidates(const Wanted& wanted, absl::Status& status) {
  if (wanted.kind != "SELECTOR") return wanted.candidates;
  auto words = ReadSelectorWords(wanted.invocation, wanted.start);
  status = words.status();
  return words.ok() ? *std::move(words) : std::vector<Candidate>{};
}

}  // namespace

int HelpCommand(const Invocation& invocation) {
  if (invocation.man) {
    std::cout << ManualPage();
    return kExitDone;
  }
  if (invocation.arguments.empty()) {
    std::cout << ProgramHelp(TextWidth());
    return kExitDone;
  }
  const std::string words = absl::StrJoin(invocation.arguments, " ");
  const std::vector<const Command*> found = CommandsOf(words);
  if (found.empty()) {
    PrintError(WithHelp(absl::StrFormat("no command is called '%s'%s", Printable(words),
                                        DidYouMean(words, CommandNames())),
                        nullptr));
    return kExitUsage;
  }
  for (const Command* command : found) {
    std::cout << (command == found.front() ? "" : "\n") << CommandHelp(*command, TextWidth());
  }
  return kExitDone;
}

int CompletionCommand(const Invocation& invocation) {
  std::cout << CompletionScript(invocation.arguments.front());
  return kExitDone;
}

// The first line tells what is wanted: words, which follow, or a file or directory, which the
// shell itself finds.
int CompleteCommand(const Invocation& invocation) {
  const Wanted wanted = WantedAt(SplitLine(invocation.arguments.front()), invocation);
  absl::Status status;
  const std::vector<Candidate> candidates = FindCandidates(wanted, status);
  std::cout << (wanted.kind == "FILE" || wanted.kind == "PATH" ? "file"
                : wanted.kind == "DIR"                         ? "directory"
                                                               : "word")
            << "\n";
  for (const Candidate& candidate : candidates) {
    std::cout << wanted.front << candidate.word << "\t" << Printable(candidate.help) << "\n";
  }
  if (status.ok()) return kExitDone;
  PrintError(Message(status));  // the scripts do not show it; a person who asks why does see it
  return kExitFailed;
}

}  // namespace vfio_agent
