#include "sysfs/numa.h"

#include <algorithm>
#include <charconv>

#include "absl/strings/str_format.h"
#include "sysfs/tree.h"

namespace vfio_agent {
namespace {

constexpr char kNodesDir[] = "sys/devices/system/node";

// The number in "node12"; -1 for another name.
int NumberOf(std::string_view name) {
  constexpr std::string_view kPrefix = "node";
  if (!name.starts_with(kPrefix)) return -1;
  int number = -1;
  const char* const end = name.data() + name.size();
  const auto read = std::from_chars(name.data() + kPrefix.size(), end, number);
  return read.ec == std::errc() && read.ptr == end ? number : -1;
}

// It ends up in a guest's XML: nothing but what the kernel writes there.
bool IsCpuList(std::string_view text) {
  return text.find_first_not_of("0123456789,-") == std::string_view::npos;
}

}  // namespace

std::vector<NumaNode> ReadNumaNodes(const Tree& tree) {
  std::vector<NumaNode> nodes;
  const auto names = tree.List(kNodesDir);
  if (!names.ok()) return nodes;
  for (const std::string& name : *names) {
    const int number = NumberOf(name);
    if (number < 0) continue;
    const auto cpus = tree.ReadText(absl::StrFormat("%s/%s/cpulist", kNodesDir, name));
    nodes.push_back({.number = number, .cpus = cpus.ok() && IsCpuList(*cpus) ? *cpus : ""});
  }
  std::ranges::sort(nodes, {}, &NumaNode::number);
  return nodes;
}

}  // namespace vfio_agent
