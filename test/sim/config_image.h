// MakeConfigImage: the config space of one function, byte for byte as the kernel would show it.
#pragma once

#include <string>

#include "test/sim/machine.h"

namespace vfio_agent::sim {

// The place of one function in the tree, which decides its PCI Express port type.
enum class PortType {
  kConventional,  // no PCI Express capability
  kEndpoint,
  kRootPort,
  kUpstream,
  kDownstream,
  kPcieToPci,
  kRootComplexEndpoint,
};

struct ConfigContext {
  PortType port = PortType::kEndpoint;
  bool multifunction = false;
  int primary = 0;      // bus that the function is on
  int secondary = 0;    // bridges only
  int subordinate = 0;  // bridges only
};

// The size that stat() gives: 4096, or 256 for conventional PCI.
int ConfigSize(const MachineDevice& device, PortType port);

// What a read gives; shorter than ConfigSize() where the rest is not readable.
std::string MakeConfigImage(const MachineDevice& device, const ConfigContext& context);

}  // namespace vfio_agent::sim
