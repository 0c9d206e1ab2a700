// What has changed between two texts, line by line. Pure.
#pragma once

#include <string>

namespace vfio_agent {

// The lines that `after` has no more, each behind "- ", then those that are new, behind "+ ". Where
// lines only changed places or layout: "".
std::string ChangedLines(const std::string& before, const std::string& after);

}  // namespace vfio_agent
