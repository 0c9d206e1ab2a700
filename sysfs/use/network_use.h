// NetworkUse: what the host's network needs of a PCI function.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sysfs/device/device_walk.h"
#include "sysfs/device/pci_device.h"
#include "sysfs/use/use.h"

namespace vfio_agent {

// Names of interfaces, as the network namespace of process 1 has them.
struct HostNetwork {
  bool known = false;               // false where that namespace cannot be looked into
  std::set<std::string> addressed;  // with a route, or an IPv6 address that is not link-local
  std::set<std::string> defaults;   // with the default route, IPv4 or IPv6
  bool operator==(const HostNetwork&) const = default;
};

// One file of proc/<pid>/net each; lines of another shape are left out.
void AddRoutes(std::string_view route, HostNetwork& network);
void AddRoutes6(std::string_view ipv6_route, HostNetwork& network);
void AddAddresses6(std::string_view if_inet6, HostNetwork& network);

HostNetwork ReadHostNetwork(const Tree& tree);

std::vector<Use> NetworkUses(const Tree& tree, const PciDevice& device, const Below& below,
                             const HostNetwork& network);

}  // namespace vfio_agent
