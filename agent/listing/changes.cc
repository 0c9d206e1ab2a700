#include "agent/listing/changes.h"

#include <set>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

namespace vfio_agent {
namespace {

// A line without its layout: where a column has become wider, nothing has changed.
std::string WordsOf(std::string line) {
  absl::RemoveExtraAsciiWhitespace(&line);
  return line;
}

// The lines of `text` that `other` lacks, a line that stands twice as often as it is more there.
std::string Only(const std::vector<std::string>& text, const std::vector<std::string>& other,
                 const char* mark) {
  std::multiset<std::string> left;
  for (const std::string& line : other) left.insert(WordsOf(line));
  std::string lines;
  for (const std::string& line : text) {
    if (const auto found = left.find(WordsOf(line)); found != left.end()) {
      left.erase(found);
    } else {
      lines += mark + line + "\n";
    }
  }
  return lines;
}

}  // namespace

std::string ChangedLines(const std::string& before, const std::string& after) {
  const std::vector<std::string> old_lines = absl::StrSplit(before, '\n', absl::SkipEmpty());
  const std::vector<std::string> new_lines = absl::StrSplit(after, '\n', absl::SkipEmpty());
  return Only(old_lines, new_lines, "- ") + Only(new_lines, old_lines, "+ ");
}

}  // namespace vfio_agent
