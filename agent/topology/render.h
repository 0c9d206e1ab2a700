// The topology as text, as a document and as pictures. Names that come from files and from the
// kernel are escaped for each.
#pragma once

#include <string>

#include "agent/text/json.h"
#include "agent/topology/topology.h"

namespace vfio_agent {

// The matrix in blocks that fit `width` columns (0: in one), the legend, then one line for each
// device, the pairs and the boards.
std::string TopologyText(const Topology& topology, size_t width);
// `vfio-agent/topology/v1`.
Json TopologyToJson(const Topology& topology);

// Pictures: host bridges by NUMA node, switches, devices coloured by their group's verdict.
std::string TopologySvg(const Topology& topology, const NodeFacts& facts);
std::string TopologyDot(const Topology& topology, const NodeFacts& facts);

}  // namespace vfio_agent
