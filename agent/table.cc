#include "agent/table.h"

#include <algorithm>

namespace vfio_agent {

namespace {

constexpr size_t kGap = 2;
constexpr size_t kLeast = 8;

// Cuts the last column to what the others leave of `width`.
void CutLast(std::vector<std::vector<std::string>>& rows, const std::vector<size_t>& widths,
             size_t width) {
  size_t used = 0;
  for (size_t i = 0; i + 1 < widths.size(); ++i) used += widths[i] + kGap;
  const size_t left = width > used + kLeast ? width - used : kLeast;
  for (auto& row : rows) {
    std::string& last = row.back();
    if (last.size() > left) last = last.substr(0, left - 2) + "..";
  }
}

}  // namespace

std::string FormatTable(std::vector<std::vector<std::string>> rows, size_t width) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  if (width > 0) CutLast(rows, widths, width);
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - row[i].size() + kGap, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace vfio_agent
