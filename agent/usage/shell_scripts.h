// The completion scripts of the shells. They know no words: each asks the program itself.
#pragma once

#include <string_view>

namespace vfio_agent {

// For "bash", "zsh" or "fish"; "" for another shell.
std::string_view CompletionScript(std::string_view shell);

}  // namespace vfio_agent
