// Devices without usable ACS registers that the kernel vouches for all the same.
#pragma once

#include "sysfs/device/pci_device.h"

namespace vfio_agent {

// True for devices of the kernel's table pci_dev_acs_enabled[] (drivers/pci/quirks.c) that occur
// in servers and workstations. Not the whole table: a device that is missing here shows up as an
// `acs-override` warning whose text says that a kernel quirk may be the reason.
bool KernelVouchesFor(const PciDevice& device);

}  // namespace vfio_agent
