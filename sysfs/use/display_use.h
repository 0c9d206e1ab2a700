// DisplayUse: the console and the firmware's frame buffer on a PCI function.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sysfs/device/device_walk.h"
#include "sysfs/device/pci_address.h"
#include "sysfs/use/use.h"

namespace vfio_agent {

// Memory that a frame buffer driver of the firmware's display holds; both ends belong to it.
struct MemoryClaim {
  uint64_t first = 0;
  uint64_t last = 0;
  std::string owner;  // "efifb", "simpledrm", "BOOTFB"
  bool operator==(const MemoryClaim&) const = default;
};

struct HostDisplay {
  std::string console;  // the virtual terminal driver that draws into fb0: "vtcon1"; or empty
  bool operator==(const HostDisplay&) const = default;
};

// The claims of frame buffer drivers in proc/iomem. Without CAP_SYS_ADMIN the kernel shows all
// addresses as zero: that says nothing, and no claim is returned.
std::vector<MemoryClaim> ParseIomem(std::string_view iomem);

std::vector<MemoryClaim> ReadMemoryClaims(const Tree& tree);

HostDisplay ReadHostDisplay(const Tree& tree);

// A claim on one of the function's regions keeps vfio-pci from mapping it, whether or not a driver
// is bound.
std::vector<Use> ClaimUses(const Tree& tree, const PciAddress& address,
                           const std::vector<MemoryClaim>& claims);

std::vector<Use> ConsoleUses(const Below& below, const HostDisplay& display);

}  // namespace vfio_agent
