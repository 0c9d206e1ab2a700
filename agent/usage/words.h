// The words of a command line as the parser has to be given them. Pure.
#pragma once

#include <string>
#include <vector>

namespace vfio_agent {

// "--cdi-dir=" as two words, of which the second is empty: the parser would take the word that
// follows for its value. Only of options that take one, and not behind "--".
std::vector<std::string> SplitEmptyValues(const std::vector<std::string>& words);

}  // namespace vfio_agent
