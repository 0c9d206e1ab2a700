// What holds of a device's facts, whatever its directory said.
#pragma once

#include "sysfs/device/pci_device.h"

namespace vfio_agent {

// Ends the process (Require) where it does not.
void RequireSoundDevice(const PciDevice& device);

}  // namespace vfio_agent
