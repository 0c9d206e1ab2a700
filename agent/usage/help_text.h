// The help of the program and of each command, from the command table. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/commands/command_table.h"

namespace vfio_agent {

// "vfio-agent list [OPTION…] [devices|groups|resources]".
std::string Synopsis(const Command& command);
// "-o, --output table|wide|json|yaml".
std::string OptionSynopsis(const OptionRow& row);

// Lines of at most `width` columns; words that are longer stand alone on theirs.
std::vector<std::string> Wrap(std::string_view text, size_t width);

// A fault of the command line, and where it says more: "...; see `vfio-agent help plan`". Null: the
// help of the program.
std::string WithHelp(std::string_view fault, const Command* command);

// What takes a word that `command` does not: "; did you mean --config new.yaml?". "" where nothing
// does.
std::string TellInstead(const Command& command, std::string_view word);

std::string ProgramHelp(size_t width);
std::string CommandHelp(const Command& command, size_t width);

}  // namespace vfio_agent
