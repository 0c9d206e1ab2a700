// ProcessUse: what it means that a process has a node of a PCI function open.
#pragma once

#include <string_view>
#include <vector>

#include "sysfs/device/device_walk.h"
#include "sysfs/use/holders.h"
#include "sysfs/use/use.h"

namespace vfio_agent {

// The nodes that stand for a function: everything below it with a number, and NVIDIA's own.
std::vector<DeviceNode> FindDeviceNodes(const Tree& tree, const PciAddress& address,
                                        const Below& below);

// The N of /dev/nvidiaN from proc/driver/nvidia/gpus/<address>/information.
std::optional<int> ParseNvidiaMinor(std::string_view information);

// The start of `command` by which it is known what to do about it; empty for none.
std::string_view KnownHolderStart(std::string_view command);

// One use for each process, with all the nodes that it has open. `held` has a list for each node.
std::vector<Use> ProcessUses(const PciAddress& address,
                             const std::vector<std::vector<Holder>>& held);

}  // namespace vfio_agent
