// What may follow on a command line that is not finished, from the command table. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/commands/command_table.h"

namespace vfio_agent {

// A line as far as it is typed, up to the cursor.
struct Unfinished {
  std::vector<std::string> words;  // after the program's name, without the last one
  std::string current;             // the last one; "" behind a blank
};
// What stands behind the first word "vfio-agent" (or a path to it) of `line`: later ones are
// values.
Unfinished SplitLine(std::string_view line);

struct Candidate {
  std::string word;
  std::string help;  // may be empty
};

// What is wanted at the cursor. Where `kind` is FILE, DIR or SELECTOR, the candidates are for
// others to find; else they are in `candidates` already, those that fit `start`.
struct Wanted {
  WordKind kind;
  std::string start;  // of the word itself
  std::string front;  // what stands before it in the same word: "--output="
  std::vector<Candidate> candidates;
  Invocation invocation;  // with the options that are typed already, such as --root
};
Wanted WantedAt(const Unfinished& line, const Invocation& invocation = {});

}  // namespace vfio_agent
