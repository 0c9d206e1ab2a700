// Suggestions for words that were misspelt. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vfio_agent {

// How many single changes lead from `a` to `b`: a letter more, less or another one, or two
// neighbours that changed places.
size_t Distance(std::string_view a, std::string_view b);

// Those of `known` that `word` may have been meant to be, the nearest first: one or two changes
// away, by the length of the word, or what it is the beginning of. Upper and lower case are one.
std::vector<std::string> Suggest(std::string_view word, const std::vector<std::string>& known);

// "members or unit", "each, round-robin or numa".
std::string EitherOf(const std::vector<std::string>& words);

// "; did you mean 'plan'?", or "" where there is nothing to suggest.
std::string DidYouMean(std::string_view word, const std::vector<std::string>& known);

}  // namespace vfio_agent
