#include "iommu/isolation/acs_quirks.h"

#include <algorithm>
#include <array>

namespace vfio_agent {
namespace {

enum class Applies { kRootPort, kFunction, kRootComplexEndpoint };

struct Quirk {
  uint16_t vendor;
  uint16_t first;
  uint16_t last;
  Applies applies;
};

constexpr std::array<Quirk, 27> kQuirks = {{
    // Intel chipset root ports: isolation without, or with misplaced, ACS registers.
    {0x8086, 0x3b42, 0x3b51, Applies::kRootPort},  // 5 series
    {0x8086, 0x1c10, 0x1c1f, Applies::kRootPort},  // 6 series
    {0x8086, 0x1d10, 0x1d1e, Applies::kRootPort},  // C600
    {0x8086, 0x1e10, 0x1e1f, Applies::kRootPort},  // 7 series
    {0x8086, 0x8c10, 0x8c1f, Applies::kRootPort},  // 8 series
    {0x8086, 0x8c90, 0x8c9f, Applies::kRootPort},  // 9 series
    {0x8086, 0x8d10, 0x8d1e, Applies::kRootPort},  // C610
    {0x8086, 0x9c10, 0x9c1b, Applies::kRootPort},  // 8 series LP
    {0x8086, 0x9c90, 0x9c9b, Applies::kRootPort},  // 9 series LP
    {0x8086, 0x9d10, 0x9d1b, Applies::kRootPort},  // 100 series LP
    {0x8086, 0xa110, 0xa11f, Applies::kRootPort},  // 100 series
    {0x8086, 0xa167, 0xa16a, Applies::kRootPort},  // 100 series
    {0x8086, 0xa290, 0xa29f, Applies::kRootPort},  // 200 series
    {0x8086, 0xa2e7, 0xa2ee, Applies::kRootPort},  // 200 series
    // Intel root-complex endpoints of any id allow peers translated addresses only.
    {0x8086, 0x0000, 0xffff, Applies::kRootComplexEndpoint},
    // Multifunction network adapters that keep their functions apart.
    {0x8086, 0x10a4, 0x10a9, Applies::kFunction},  // 82571, 82575
    {0x8086, 0x10c6, 0x10c9, Applies::kFunction},  // 82598, 82576
    {0x8086, 0x10d5, 0x10f1, Applies::kFunction},  // 82571, 82575, 82576, 82598
    {0x8086, 0x10f7, 0x10fc, Applies::kFunction},  // 82599
    {0x8086, 0x1507, 0x1529, Applies::kFunction},  // 82599, 82580, 82576, I350, X540
    {0x8086, 0x154d, 0x1558, Applies::kFunction},  // 82599
    {0x14e4, 0x16d7, 0x16d7, Applies::kFunction},  // BCM57414
    {0x14e4, 0x1750, 0x1752, Applies::kFunction},  // BCM57508, 57504, 57502
    {0x1924, 0x0903, 0x0923, Applies::kFunction},  // SFC9120, SFC9140
    // Arm servers whose root ports isolate by construction.
    {0x1def, 0xe005, 0xe00c, Applies::kRootPort},  // Ampere Altra
    {0x17cb, 0x0400, 0x0401, Applies::kRootPort},  // Qualcomm
    {0x177d, 0xa000, 0xafff, Applies::kRootPort},  // Cavium ThunderX
}};

bool Fits(const Quirk& quirk, const PciDevice& device) {
  if (device.vendor != quirk.vendor || device.device < quirk.first || device.device > quirk.last) {
    return false;
  }
  const Fact<PcieType>& type = device.config.pcie_type;
  if (quirk.applies == Applies::kRootPort) return type.is(PcieType::kRootPort);
  if (quirk.applies == Applies::kRootComplexEndpoint) {
    return type.is(PcieType::kRootComplexEndpoint);
  }
  return type.known() && !device.IsBridge();
}

}  // namespace

bool KernelVouchesFor(const PciDevice& device) {
  return std::ranges::any_of(kQuirks, [&device](const Quirk& q) { return Fits(q, device); });
}

}  // namespace vfio_agent
