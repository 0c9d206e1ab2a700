// Table: text in columns, for people.
#pragma once

#include <string>
#include <vector>

namespace vfio_agent {

// Rows of equal length, the first one the heading; columns two spaces apart, no trailing blanks.
std::string FormatTable(const std::vector<std::vector<std::string>>& rows);

}  // namespace vfio_agent
