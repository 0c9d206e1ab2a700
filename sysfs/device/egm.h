// Egm: regions of a Grace machine's own memory that its GPUs may use like theirs (Extended GPU
// Memory), and that a guest gets as its memory by a device node, "/dev/egm4".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "sysfs/device/pci_address.h"

namespace vfio_agent {

class Tree;

struct EgmRegion {
  std::string name;              // "egm4", of the node below /dev as well
  std::vector<PciAddress> gpus;  // sorted: all that the kernel counts to it
  bool has_node = false;
  // Why it is not known which GPUs it belongs to; then there are none here. Else empty.
  std::string fault;
  bool operator==(const EgmRegion&) const = default;
};

// sys/class/egm, sorted by number. Empty on every other machine, and as long as no GPU is with the
// driver that makes the regions.
std::vector<EgmRegion> ReadEgmRegions(const Tree& tree);

// One of them now. The kernel lists GPUs in a file `gpu_devices`, one address a line, or by a link
// with the address as its name for each; where it does both, all of them count. A list that is not
// understood is a fault as a whole: with one GPU too few a guest would have another's memory.
EgmRegion ReadEgmRegion(const Tree& tree, std::string_view name);

}  // namespace vfio_agent
