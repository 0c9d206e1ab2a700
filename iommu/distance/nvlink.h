// NvlinkBoard: GPUs that NVLink ties together, as far as PCI ids tell, and what that means for
// giving them away. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sysfs/node_facts.h"

namespace vfio_agent {

// A GPU module (SXM) is soldered to or clamped on a board with others; a card is not.
bool IsNvlinkModule(const PciDevice& device);
bool IsNvswitch(const PciDevice& device);

// The modules of one generation in this node, and the switches between them.
struct NvlinkBoard {
  std::string family;                // "H100/H200 SXM"
  std::vector<PciAddress> gpus;      // sorted
  std::vector<PciAddress> switches;  // NVSwitches that are PCI functions
  // The generation has NVSwitches, and they are PCI functions of their own.
  bool has_switches = false;
  bool switches_on_pci = false;
  bool operator==(const NvlinkBoard&) const = default;
};
std::vector<NvlinkBoard> FindNvlinkBoards(const NodeFacts& facts);

// What an operator has to know of it before giving its GPUs to guests, one sentence each.
std::vector<std::string> WhatItMeans(const NvlinkBoard& board);

}  // namespace vfio_agent
