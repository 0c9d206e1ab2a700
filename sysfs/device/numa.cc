#include "sysfs/device/numa.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "absl/strings/str_format.h"
#include "sysfs/proc_text.h"
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

std::string NodeFile(int node, const char* name) {
  return absl::StrFormat("%s/node%d/%s", kNodesDir, node, name);
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

// The kernel writes one distance for each node that is online, in the order of their numbers
// (node_read_distance() in drivers/base/node.c).
std::optional<int> NearestCpuNode(const Tree& tree, int node) {
  const auto cpus = tree.ReadText(NodeFile(node, "cpulist"));
  if (!cpus.ok() || !cpus->empty()) return std::nullopt;
  const auto text = tree.ReadText(NodeFile(node, "distance"));
  if (!text.ok()) return std::nullopt;
  const std::vector<std::string_view> distances = Fields(*text);
  const std::vector<NumaNode> nodes = ReadNumaNodes(tree);
  if (distances.size() != nodes.size()) return std::nullopt;
  std::optional<std::pair<uint64_t, int>> best;  // distance, number
  for (size_t i = 0; i < nodes.size(); ++i) {
    const std::optional<uint64_t> distance = ParseNumber(distances[i], 10);
    if (nodes[i].cpus.empty() || !distance) continue;
    const std::pair found(*distance, nodes[i].number);
    if (!best || found < *best) best = found;
  }
  if (!best) return std::nullopt;
  return best->second;
}

}  // namespace vfio_agent
