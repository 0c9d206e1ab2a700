#include "agent/usage/suggest.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"

namespace vfio_agent {
namespace {

constexpr size_t kLongestWord = 64;  // longer ones are no misspelt words, and would cost time
constexpr size_t kMostSuggested = 3;

// Of three letters one may be wrong, of six two.
size_t Allowed(std::string_view word) { return std::clamp<size_t>(word.size() / 3, 1, 2); }

bool IsBeginning(std::string_view word, std::string_view known) {
  return word.size() >= 2 && known.starts_with(word);
}

}  // namespace

size_t Distance(std::string_view a, std::string_view b) {
  // Three rows of the table: of the letter before last, of the last one, of this one.
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, last);
    std::swap(last, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t other = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, other});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

std::vector<std::string> Suggest(std::string_view word, const std::vector<std::string>& known) {
  std::vector<std::pair<size_t, std::string>> near;
  if (word.empty() || word.size() > kLongestWord) return {};
  const std::string lower = absl::AsciiStrToLower(std::string(word));
  for (const std::string& candidate : known) {
    const std::string other = absl::AsciiStrToLower(candidate);
    const size_t distance = IsBeginning(lower, other) ? 0 : Distance(lower, other);
    if (distance <= Allowed(word)) near.emplace_back(distance, candidate);
  }
  std::ranges::stable_sort(near, {}, &std::pair<size_t, std::string>::first);
  std::vector<std::string> words;
  for (const auto& [distance, candidate] : near) {
    if (distance == near.front().first && words.size() < kMostSuggested) words.push_back(candidate);
  }
  return words;
}

std::string EitherOf(const std::vector<std::string>& words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    const bool last = i + 1 == words.size();
    text += (i == 0 ? "" : last ? " or " : ", ") + words[i];
  }
  return text;
}

std::string DidYouMean(std::string_view word, const std::vector<std::string>& known) {
  const std::vector<std::string> words = Suggest(word, known);
  return words.empty() ? "" : "; did you mean '" + absl::StrJoin(words, "' or '") + "'?";
}

}  // namespace vfio_agent
