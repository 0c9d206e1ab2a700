#include "agent/usage/complete.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace vfio_agent {
namespace {

struct Position {
  const Command* command = nullptr;
  std::string first;  // of a command of two words, where the second is not typed
  std::vector<std::string> arguments;
  std::optional<OptionRow> open;  // the option whose value stands at the cursor
};

bool IsFirstHalf(std::string_view word) {
  const std::string start = std::string(word) + " ";
  return std::ranges::any_of(Commands(),
                             [&start](const Command& c) { return c.name.starts_with(start); });
}

void TakeArgument(const std::string& word, Position& at) {
  if (at.command != nullptr) {
    at.arguments.push_back(word);
    return;
  }
  const std::string name = at.first.empty() ? word : at.first + " " + word;
  at.command = FindCommand(name);
  if (at.command == nullptr && IsFirstHalf(name)) at.first = name;
}

void TakeValue(const OptionRow& row, const std::string& value, Invocation& invocation) {
  if (row.set != nullptr) {
    row.set(invocation, value);
  } else {
    invocation.flags[std::string(row.name)] = value;
  }
}

Position Walk(const std::vector<std::string>& words, Invocation& invocation) {
  Position at;
  for (const std::string& word : words) {
    if (at.open) {
      TakeValue(*at.open, word, invocation);
      at.open.reset();
      continue;
    }
    const size_t sign = word.starts_with("--") ? word.find('=') : std::string::npos;
    const std::optional<OptionRow> row = FindOption(at.command, word.substr(0, sign));
    if (!word.starts_with('-')) {
      TakeArgument(word, at);
    } else if (row && sign != std::string::npos) {
      TakeValue(*row, word.substr(sign + 1), invocation);
    } else if (row && !row->value.empty()) {
      at.open = row;
    }
  }
  return at;
}

std::vector<Candidate> CommandWords(std::string_view first) {
  std::vector<Candidate> words;
  const std::string start = first.empty() ? "" : std::string(first) + " ";
  for (const Command& command : Commands()) {
    if (command.hidden || !command.name.starts_with(start)) continue;
    std::string word(command.name.substr(start.size()));
    const size_t blank = word.find(' ');
    // Of "config check" and "config show" the first word is offered once.
    if (blank != std::string::npos) word.resize(blank);
    const std::string help = blank == std::string::npos ? std::string(command.summary) : "";
    if (std::ranges::count(words, word, &Candidate::word) == 0) words.push_back({word, help});
  }
  return words;
}

std::vector<Candidate> OptionWords(const Command* command) {
  std::vector<Candidate> words;
  for (const OptionRow& row : OptionsOf(command)) {
    words.push_back({absl::StrFormat("--%s", std::string(row.name)), std::string(row.help)});
  }
  return words;
}

void OfferKind(WordKind kind, Wanted& wanted) {
  wanted.kind = kind;
  for (const std::string& choice : ChoicesOf(kind)) wanted.candidates.push_back({choice, ""});
}

void Offer(const Position& at, const std::string& current, Wanted& wanted) {
  const size_t sign = current.starts_with("--") ? current.find('=') : std::string::npos;
  if (at.open) {
    OfferKind(at.open->value, wanted);
  } else if (sign != std::string::npos) {
    wanted.front = current.substr(0, sign + 1);
    wanted.start = current.substr(sign + 1);
    if (const auto row = FindOption(at.command, current.substr(0, sign))) {
      OfferKind(row->value, wanted);
    }
  } else if (current.starts_with('-')) {
    wanted.candidates = OptionWords(at.command);
  } else if (at.command == nullptr) {
    wanted.candidates = CommandWords(at.first);
  } else if (at.command->argument.kind == "COMMAND" && at.arguments.size() < 2) {
    wanted.candidates = CommandWords(at.arguments.empty() ? "" : at.arguments.front());
  } else if (at.arguments.size() < at.command->argument.most) {
    OfferKind(at.command->argument.kind, wanted);
  } else {
    wanted.candidates = OptionWords(at.command);
  }
}

}  // namespace

Unfinished SplitLine(std::string_view line) {
  std::vector<std::string> words =
      absl::StrSplit(std::string(line), absl::ByAnyChar(" \t\n"), absl::SkipEmpty());
  const bool behind_blank = line.empty() || line.back() == ' ' || line.back() == '\t';
  if (behind_blank) words.emplace_back();
  Unfinished unfinished{.current = words.back()};
  words.pop_back();
  const auto is_program = [](const std::string& word) {
    return word == "vfio-agent" || word.ends_with("/vfio-agent");
  };
  const auto program = std::ranges::find_if(words, is_program);
  unfinished.words.assign(program == words.end() ? words.begin() : program + 1, words.end());
  return unfinished;
}

Wanted WantedAt(const Unfinished& line, const Invocation& invocation) {
  Wanted wanted{.start = line.current, .invocation = invocation};
  const Position at = Walk(line.words, wanted.invocation);
  Offer(at, line.current, wanted);
  std::erase_if(wanted.candidates, [&wanted](const Candidate& candidate) {
    return !candidate.word.starts_with(wanted.start);
  });
  return wanted;
}

}  // namespace vfio_agent
