#include "agent/usage/commit.h"

#include <vector>

#include "absl/strings/str_split.h"

namespace vfio_agent {
namespace {

constexpr std::string_view kHex = "0123456789abcdef";
constexpr size_t kShortest = 7;  // that git abbreviates to

bool NamesCommit(std::string_view part) {
  return part.size() > kShortest && part.front() == 'g' &&
         part.find_first_not_of(kHex, 1) == std::string_view::npos;
}

}  // namespace

std::string CommitOf(std::string_view version) {
  const size_t plus = version.find('+');
  if (plus == std::string_view::npos) return "";
  const std::vector<std::string> parts = absl::StrSplit(std::string(version.substr(plus + 1)), '.');
  for (const std::string& part : parts) {
    if (NamesCommit(part)) return part.substr(1);
  }
  return "";
}

}  // namespace vfio_agent
