// Table: text in columns, for people.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace vfio_agent {

// Rows of equal length, the first one the heading; columns two spaces apart, no trailing blanks.
// `width` > 0: the last column is cut, with "..", so that lines fit.
std::string FormatTable(std::vector<std::vector<std::string>> rows, size_t width = 0);

}  // namespace vfio_agent
