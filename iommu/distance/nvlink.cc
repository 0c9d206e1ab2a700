#include "iommu/distance/nvlink.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_format.h"

namespace vfio_agent {
namespace {

constexpr uint16_t kNvidia = 0x10de;

struct Family {
  const char* name;
  std::array<uint16_t, 6> gpus;  // 0: no further one
  uint16_t nvswitch;             // 0: none that is a PCI function
  bool has_switches;
};

// Device ids as pci.ids has them, those that it names SXM, and the H800 and H20, which exist as
// modules only.
constexpr std::array<Family, 7> kFamilies = {{
    {"P100 SXM2", {0x15f9}, 0, false},
    {"V100 SXM2", {0x1db1, 0x1db5, 0x1df5}, 0, false},
    {"V100 SXM3", {0x1db8}, 0x1ac2, true},
    {"A100/A800 SXM4", {0x20b0, 0x20b2, 0x20b3, 0x20f3}, 0x1af1, true},
    {"H100/H200/H800/H20 SXM", {0x2330, 0x2335, 0x2324, 0x2329}, 0x22a3, true},
    // The fourth generation of NVSwitches is reached through ConnectX functions of the board.
    {"B200 SXM", {0x2901}, 0, true},
    {"B300 SXM", {0x3182}, 0, true},
}};

bool Has(const Family& family, const PciDevice& device) {
  return device.vendor == kNvidia && device.device != 0 && !device.IsVf() &&
         std::ranges::count(family.gpus, device.device) > 0;
}

std::string Many(size_t count, const char* one, const char* many) {
  return absl::StrFormat("%d %s", count, count == 1 ? one : many);
}

}  // namespace

bool IsNvlinkModule(const PciDevice& device) {
  return std::ranges::any_of(kFamilies, [&device](const Family& f) { return Has(f, device); });
}

bool IsNvswitch(const PciDevice& device) {
  return device.vendor == kNvidia && device.Class16() == 0x0680 && !device.IsBridge();
}

std::vector<NvlinkBoard> FindNvlinkBoards(const NodeFacts& facts) {
  std::vector<NvlinkBoard> boards;
  for (const Family& family : kFamilies) {
    NvlinkBoard board{.family = family.name,
                      .has_switches = family.has_switches,
                      .switches_on_pci = family.nvswitch != 0};
    for (const PciDevice& device : facts.devices) {
      if (Has(family, device)) board.gpus.push_back(device.address);
      if (IsNvswitch(device) && device.device == family.nvswitch) {
        board.switches.push_back(device.address);
      }
    }
    if (!board.gpus.empty() || !board.switches.empty()) boards.push_back(std::move(board));
  }
  return boards;
}

std::vector<std::string> WhatItMeans(const NvlinkBoard& board) {
  if (!board.has_switches) {
    return {
        "NVLink joins these modules directly: a guest has it between those of its GPUs that "
        "are linked"};
  }
  const std::string gpus = Many(board.gpus.size(), "GPU", "GPUs");
  std::vector<std::string> text;
  if (!board.switches.empty()) {
    text.push_back(absl::StrFormat(
        "whole board to one guest: all %s and all %s together, with the fabric manager in the "
        "guest",
        gpus, Many(board.switches.size(), "NVSwitch", "NVSwitches")));
  } else if (board.switches_on_pci) {
    text.push_back(
        "its NVSwitches are not on this node's PCI: whoever gave this machine its GPUs has them "
        "and runs the fabric manager");
  } else {
    text.push_back(absl::StrFormat(
        "whole board to one guest: all %s and the board's own ConnectX functions, through which "
        "its NVSwitches are managed (VPD says SW_MNG), with the fabric manager in the guest",
        gpus));
  }
  text.push_back(
      "some of the GPUs to a guest: the fabric manager, in shared NVSwitch mode on the host or in "
      "a service VM, has to activate the partition of exactly those GPUs before the guest starts");
  text.push_back(
      "with neither, a guest has no NVLink, and CUDA may not start there (error 802, system not "
      "yet initialized); vfio-agent runs no fabric manager");
  return text;
}

}  // namespace vfio_agent
