#include "sysfs/host/host_memory.h"

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_format.h"
#include "sysfs/paths.h"
#include "sysfs/proc_text.h"
#include "sysfs/status.h"
#include "sysfs/tree.h"

namespace vfio_agent {
namespace {

constexpr char kNodesDir[] = "sys/devices/system/node";
constexpr uint64_t kMostNodes = 4096;

// "node12" is 12.
std::optional<int> NodeNumber(std::string_view name) {
  constexpr std::string_view kStart = "node";
  if (!name.starts_with(kStart)) return std::nullopt;
  const std::optional<uint64_t> number = ParseNumber(name.substr(kStart.size()), 10);
  if (!number || *number > kMostNodes) return std::nullopt;
  return static_cast<int>(*number);
}

uint64_t ReadCount(const Tree& tree, const std::string& path) {
  const absl::StatusOr<std::string> text = tree.ReadText(path);
  return text.ok() ? ParseNumber(*text, 10).value_or(0) : 0;
}

// The directories "hugepages-1048576kB" below `dir`.
void ReadHugePages(const Tree& tree, const std::string& dir, std::optional<int> node,
                   std::vector<HugePages>& pages) {
  constexpr std::string_view kStart = "hugepages-";
  constexpr std::string_view kEnd = "kB";
  const absl::StatusOr<std::vector<std::string>> names = tree.List(dir);
  for (const std::string& name : names.ok() ? *names : std::vector<std::string>()) {
    std::string_view size = name;
    if (!size.starts_with(kStart) || !size.ends_with(kEnd)) continue;
    size.remove_prefix(kStart.size());
    size.remove_suffix(kEnd.size());
    const std::optional<uint64_t> size_kb = ParseNumber(size, 10);
    if (!size_kb) continue;
    const std::string below = absl::StrFormat("%s/%s", dir, name);
    pages.push_back({.node = node,
                     .size_kb = *size_kb,
                     .reserved = ReadCount(tree, below + "/nr_hugepages"),
                     .free = ReadCount(tree, below + "/free_hugepages")});
  }
}

void ReadNodes(const Tree& tree, MemoryFacts& facts) {
  const absl::StatusOr<std::vector<std::string>> names = tree.List(kNodesDir);
  for (const std::string& name : names.ok() ? *names : std::vector<std::string>()) {
    const std::optional<int> node = NodeNumber(name);
    if (!node) continue;
    ++facts.numa_nodes;
    ReadHugePages(tree, absl::StrFormat("%s/%s/hugepages", kNodesDir, name), node,
                  facts.huge_pages);
  }
  if (facts.numa_nodes == 0) {
    ReadHugePages(tree, "sys/kernel/mm/hugepages", std::nullopt, facts.huge_pages);
  }
  std::ranges::sort(facts.huge_pages, [](const HugePages& a, const HugePages& b) {
    return std::pair(a.node, a.size_kb) < std::pair(b.node, b.size_kb);
  });
}

}  // namespace

// One heading, then "<name> <type> <size> <used> <priority>"; blanks of a name are "\040".
std::vector<SwapArea> ParseSwapAreas(std::string_view text) {
  std::vector<SwapArea> areas;
  for (const std::string_view line : Lines(text)) {
    const std::vector<std::string_view> words = Fields(line);
    if (words.size() < 3 || words[0] == "Filename") continue;
    areas.push_back({.name = Printable(words[0]),
                     .type = Printable(words[1], 16),
                     .size_kb = ParseNumber(words[2], 10).value_or(0)});
  }
  return areas;
}

MemoryFacts ReadMemoryFacts(const Tree& tree) {
  MemoryFacts facts;
  const absl::StatusOr<std::string> swaps = ReadProcText(tree, kSwaps);
  if (swaps.ok()) facts.swaps = Fact<std::vector<SwapArea>>(ParseSwapAreas(*swaps));
  const int error = ErrnoOf(swaps.status());
  if (error != 0 && error != ENOENT) facts.swaps = Fact<std::vector<SwapArea>>::Unknown(error);
  ReadNodes(tree, facts);
  const absl::StatusOr<std::string> balancing = tree.ReadText("proc/sys/kernel/numa_balancing");
  if (balancing.ok()) facts.numa_balancing = Fact<bool>(*balancing != "0");
  return facts;
}

}  // namespace vfio_agent
