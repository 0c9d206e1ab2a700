// NumaNodes: the node's NUMA nodes and their processors.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace vfio_agent {

class Tree;

struct NumaNode {
  int number = 0;
  std::string cpus;  // "0-31,64-95"; empty for memory only, and where it is not told
  bool operator==(const NumaNode&) const = default;
};

// sys/devices/system/node, by number. Empty where the tree does not tell.
std::vector<NumaNode> ReadNumaNodes(const Tree& tree);

// Of a node without processors, as a GPU with memory of its own is one: the nearest that has some,
// the lower number of two as near. nullopt for a node with processors, and where the tree does not
// tell.
std::optional<int> NearestCpuNode(const Tree& tree, int node);

}  // namespace vfio_agent
