// MemoryFacts: swap, huge pages and NUMA balancing of the node.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sysfs/fact.h"

namespace vfio_agent {

class Tree;

struct SwapArea {
  std::string name;  // "/dev/sda2", "/swapfile"
  std::string type;  // "partition", "file"
  uint64_t size_kb = 0;
  bool operator==(const SwapArea&) const = default;
};

// The huge pages of one size that one NUMA node has.
struct HugePages {
  std::optional<int> node;  // nullopt: of the whole machine, where the kernel knows no NUMA nodes
  uint64_t size_kb = 0;
  uint64_t reserved = 0;
  uint64_t free = 0;
  bool operator==(const HugePages&) const = default;
};

struct MemoryFacts {
  // Absent where there is no proc/swaps (a kernel without swap, a copy without it); unknown where
  // it cannot be read.
  Fact<std::vector<SwapArea>> swaps;
  std::vector<HugePages> huge_pages;  // by node, then size; with those of which there are none
  int numa_nodes = 0;                 // 0: the kernel does not tell
  Fact<bool> numa_balancing;
  bool operator==(const MemoryFacts&) const = default;
};

MemoryFacts ReadMemoryFacts(const Tree& tree);

// The areas that proc/swaps names.
std::vector<SwapArea> ParseSwapAreas(std::string_view text);

}  // namespace vfio_agent
