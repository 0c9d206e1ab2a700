#include "agent/text/table.h"

#include <algorithm>

#include "sysfs/proc_text.h"

namespace vfio_agent {
namespace {

constexpr size_t kGap = 2;
constexpr size_t kLeast = 8;         // of the last column, whatever the width
constexpr size_t kComfortable = 20;  // below this, spare columns go
constexpr size_t kLongestCell = 2000;

std::vector<size_t> WidthsOf(const TableRows& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  return widths;
}

// What the columns before the last one take.
size_t UsedBefore(const std::vector<size_t>& widths) {
  size_t used = 0;
  for (size_t i = 0; i + 1 < widths.size(); ++i) used += widths[i] + kGap;
  return used;
}

void DropSpare(TableRows& rows, const TableStyle& style) {
  for (const std::string_view heading : style.spare) {
    const std::vector<size_t> widths = WidthsOf(rows);
    const size_t wanted = std::min(widths.back(), kComfortable);
    if (UsedBefore(widths) + wanted <= style.width) return;
    const auto found = std::ranges::find(rows.front(), heading);
    if (found == rows.front().end()) continue;
    const auto column = found - rows.front().begin();
    for (auto& row : rows) row.erase(row.begin() + column);
  }
}

void CutLast(TableRows& rows, size_t width) {
  const size_t used = UsedBefore(WidthsOf(rows));
  const size_t left = width > used + kLeast ? width - used : kLeast;
  for (auto& row : rows) {
    std::string& last = row.back();
    if (last.size() > left) last = last.substr(0, left - 2) + "..";
  }
}

}  // namespace

std::string FormatTable(TableRows rows, const TableStyle& style) {
  for (auto& row : rows) {
    for (std::string& cell : row) cell = Printable(cell, kLongestCell);
  }
  if (style.width > 0 && !rows.empty()) {
    DropSpare(rows, style);
    CutLast(rows, style.width);
  }
  const std::vector<size_t> widths = WidthsOf(rows);
  std::string text;
  for (const auto& row : rows) {
    size_t missing = 0;  // blanks before the next cell that is not empty
    for (size_t i = 0; i < row.size(); ++i) {
      if (!row[i].empty()) {
        const Style cell_style = style.paint == nullptr  ? Style::kPlain
                                 : &row == &rows.front() ? Style::kBold
                                                         : style.paint(rows.front()[i], row[i]);
        text += std::string(missing, ' ') + Paint(row[i], cell_style);
        missing = 0;
      }
      missing += widths[i] - row[i].size() + kGap;
    }
    text += "\n";
  }
  return text;
}

}  // namespace vfio_agent
