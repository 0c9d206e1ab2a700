#include "test/sim/driver_table.h"

#include <algorithm>
#include <iterator>

namespace vfio_agent::sim {
namespace {

struct Row {
  const char* driver;
  uint16_t vendor;      // 0: any
  uint16_t class_code;  // base and sub class; 0: any
};

constexpr Row kRows[] = {
    {"nvidia", 0x10de, 0x0300},
    {"nvidia", 0x10de, 0x0302},
    {"nouveau", 0x10de, 0x0300},
    {"nouveau", 0x10de, 0x0302},
    {"nvidia-nvswitch", 0x10de, 0x0680},
    {"nvidia-gpu", 0x10de, 0x0c80},  // the I2C controller of a card's USB-C port
    {"snd_hda_intel", 0, 0x0403},
    {"xhci_hcd", 0, 0x0c03},
    {"nvme", 0, 0x0108},
    {"ahci", 0, 0x0106},
    {"mlx5_core", 0x15b3, 0},
    {"e1000e", 0x8086, 0x0200},
    {"igb", 0x8086, 0x0200},
    {"ixgbe", 0x8086, 0x0200},
    {"ice", 0x8086, 0x0200},
    {"i40e", 0x8086, 0x0200},
    {"i915", 0x8086, 0x0300},
    {"xe", 0x8086, 0x0300},
    {"i801_smbus", 0x8086, 0x0c05},
    {"amdgpu", 0x1002, 0x0300},
    {"amdgpu", 0x1002, 0x0380},
    {"amdgpu", 0x1002, 0x1200},
    {"ast", 0x1a03, 0x0300},
    {"virtio-pci", 0x1af4, 0},
    {"pcieport", 0, 0x0604},
};

}  // namespace

Driver MakeDriver(std::string_view name) {
  Driver driver{.name = std::string(name), .module = std::string(name)};
  std::replace(driver.module.begin(), driver.module.end(), '-', '_');
  driver.vfio = driver.module.find("vfio") != std::string::npos &&
                driver.module.find("pci") != std::string::npos;
  if (name == "nvidia-nvswitch") driver.module = "nvidia";
  return driver;
}

bool TakesById(const Driver& driver, const MachineDevice& device) {
  if (driver.ids.contains({device.vendor, device.device})) return true;
  const auto class16 = static_cast<uint16_t>(device.class_code >> 8);
  return std::any_of(std::begin(kRows), std::end(kRows), [&](const Row& row) {
    return driver.name == row.driver && (row.vendor == 0 || row.vendor == device.vendor) &&
           (row.class_code == 0 || row.class_code == class16);
  });
}

}  // namespace vfio_agent::sim
