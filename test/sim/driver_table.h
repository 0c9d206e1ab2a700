// Which driver takes which device: the id tables of the drivers that the machines use.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "test/sim/machine.h"

namespace vfio_agent::sim {

struct Driver {
  std::string name;    // as below sys/bus/pci/drivers: "vfio-pci"
  std::string module;  // as below sys/module: "vfio_pci"
  bool vfio = false;   // registers its devices with vfio
  // Vendor and device added through new_id, or that the machine file shows the driver to take.
  std::set<std::pair<uint16_t, uint16_t>> ids;
};

// Driver and module names differ in '-' and '_'; every vfio driver carries "vfio" and "pci".
Driver MakeDriver(std::string_view name);

// By the built-in id table or `driver.ids`; driver_override is the caller's business.
bool TakesById(const Driver& driver, const MachineDevice& device);

}  // namespace vfio_agent::sim
