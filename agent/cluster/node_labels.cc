#include "agent/cluster/node_labels.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "sysfs/proc_text.h"

namespace vfio_agent {
namespace {

constexpr size_t kLongestValue = 63;

bool IsAlnum(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)); }

bool IsLabelValue(std::string_view value) {
  if (value.empty()) return true;
  return value.size() <= kLongestValue && IsAlnum(value.front()) && IsAlnum(value.back()) &&
         std::ranges::all_of(value,
                             [](char c) { return IsAlnum(c) || c == '-' || c == '_' || c == '.'; });
}

}  // namespace

NodeLabels NodeLabelsOf(std::string_view lines) {
  NodeLabels labels;
  for (const std::string_view line : Lines(lines)) {
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos || !IsLabelValue(line.substr(equals + 1))) continue;
    labels.emplace(line.substr(0, equals), line.substr(equals + 1));
  }
  return labels;
}

}  // namespace vfio_agent
