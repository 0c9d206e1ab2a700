// Table: text in columns, for people.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "agent/text/terminal.h"

namespace vfio_agent {

using TableRows = std::vector<std::vector<std::string>>;

struct TableStyle {
  size_t width = 0;  // 0: as wide as the text is
  // Columns that may go where the last one would have too little room, the first of these first.
  std::vector<std::string_view> spare;
  // How a cell is painted; null: no colours, not of the heading either.
  Style (*paint)(std::string_view heading, std::string_view cell) = nullptr;
};

// Rows of equal length, the first one the heading; columns two spaces apart, no trailing blanks.
// Lines fit the width as far as columns may go; the last column is cut, with "..". What is not
// printable ASCII becomes '?': a text may come from a device or a process.
std::string FormatTable(TableRows rows, const TableStyle& style = {});

}  // namespace vfio_agent
