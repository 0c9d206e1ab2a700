#include "test/agent/fault_table.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

namespace vfio_agent {
namespace {

std::vector<std::string> FieldsOf(std::string_view line) {
  std::vector<std::string> fields = absl::StrSplit(std::string(line), '|');
  for (std::string& field : fields) absl::StripAsciiWhitespace(&field);
  return fields;
}

}  // namespace

std::vector<Cell> CellsOf(std::string_view table, const std::vector<std::string>& faults) {
  std::vector<std::string> lines = absl::StrSplit(std::string(table), '\n', absl::SkipEmpty());
  const std::vector<std::string> head = FieldsOf(lines.front());
  std::vector<Cell> cells;
  for (auto line = lines.begin() + 2; line != lines.end(); ++line) {
    const std::vector<std::string> fields = FieldsOf(*line);
    for (size_t i = 2; i < fields.size(); ++i) {
      if (fields[i].empty() || fields[i] == "-" || !std::ranges::count(faults, head[i])) continue;
      cells.push_back({.function = fields[1].front() - '0',
                       .op = fields[1].substr(2),
                       .fault = head[i],
                       .end = fields[i]});
    }
  }
  return cells;
}

}  // namespace vfio_agent
