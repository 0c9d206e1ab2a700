// DeviceWalk: what stands below one PCI function in sysfs, found without following links.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sysfs/device/pci_address.h"

namespace vfio_agent {

class Tree;

// Paths of directories, relative to the root.
struct Below {
  std::vector<std::string> interfaces;  // network interfaces, at any depth: "…/virtio0/net/eth0"
  std::vector<std::string> rdma;        // "…/infiniband/mlx5_0"
  std::vector<std::string> disks;       // block devices and their partitions
  std::vector<std::string> framebuffers;  // "…/graphics/fb0"
  std::vector<std::string> usb_devices;   // without root hubs
  std::vector<std::string> mediated;      // mdev instances
  std::vector<std::string> domains;       // PCI domains of their own: "…/pci10000:00" (Intel VMD)
  std::vector<std::string> nodes;         // everything with a number: an attribute `dev`
  // False where a directory could not be read or the walk came to its limits.
  bool whole = true;
  bool operator==(const Below&) const = default;
};

// Walks down from the function's directory; never into the directories of other functions. An
// NVMe disk with several controllers hides the paths below them: its head, which stands elsewhere,
// is put in their place.
Below WalkBelow(const Tree& tree, const PciAddress& address);

// Last component of a path, and the one before.
std::string_view NameOf(std::string_view path);
std::string_view ParentNameOf(std::string_view path);

}  // namespace vfio_agent
