// OverrideReader: reads driver_override, a read that the kernel may not return from.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "sysfs/device/pci_address.h"
#include "sysfs/fact.h"

namespace vfio_agent {

// driver_override is read under the device's lock (drivers/pci/pci-sysfs.c), which an unbind keeps
// for as long as it lasts, and nothing ends such a read. So a child reads it; one that does not
// come back is left to the kernel, and its device is not read again before it does. One thread.
class OverrideReader {
 public:
  // The texts by device: kNoOverride where there is none. Unknown with ETIMEDOUT where the kernel
  // does not answer within `patience`, absent where there is no such attribute.
  std::map<PciAddress, Fact<std::string>> Read(const std::string& root,
                                               const std::vector<PciAddress>& devices,
                                               absl::Duration patience);

 private:
  void Reap();

  std::map<PciAddress, pid_t> stuck_;
};

}  // namespace vfio_agent
