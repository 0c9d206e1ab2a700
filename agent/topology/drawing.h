// Drawing: what both pictures show, as a tree: NUMA nodes, host bridges, switches, devices.
#pragma once

#include <string>
#include <vector>

#include "agent/topology/topology.h"

namespace vfio_agent {

struct Drawn {
  enum class Kind { kNuma, kHostBridge, kPort, kSwitch, kDevice };
  Kind kind = Kind::kNuma;
  std::string title;                       // printable ASCII, not escaped
  std::string detail;                      // the same; may be empty
  Verdict verdict = Verdict::kUnselected;  // of devices
  // How it hangs below its parent: by this port, which keeps its peers apart, or does not.
  std::string by;
  bool open = false;
  std::vector<Drawn> children;
};

// One for each NUMA node with a device; those of unknown nodes last. Only what leads to a device of
// the topology is drawn.
std::vector<Drawn> DrawTopology(const Topology& topology, const NodeFacts& facts);

struct VerdictColour {
  Verdict verdict;
  const char* colour;  // "#2f6fd0": readable below white letters
  const char* words;
};
const std::vector<VerdictColour>& VerdictColours();
const char* ColourOf(Verdict verdict);

}  // namespace vfio_agent
