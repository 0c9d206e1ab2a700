// Rivals: other managers of the same devices, told by the names of their pods.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sysfs/device/pci_device.h"

namespace vfio_agent {

struct RivalKind {
  // The DaemonSet's name, after which its pods are called, with five characters behind it.
  std::string_view set;
  std::string_view what;    // "NVIDIA's vfio-manager"
  std::string_view does;    // why there must not be two: "takes its cards off vfio-pci …"
  uint16_t vendor = 0;      // whose devices it manages; 0: anybody's
  std::string_view remedy;  // how it is switched off
  bool prefixed = false;    // a Helm release's name may stand before `set`
  bool vgpus_only = false;  // it manages nothing but the vGPUs of cards
  bool warns_only = false;  // it may as well leave the devices alone: nothing is refused
};

// The kind of manager that a pod of this name is, or null for any other pod.
const RivalKind* FindRivalKind(std::string_view pod);

// True for one that manages devices like `device`, or vGPUs on one where `vgpus`.
bool Manages(const RivalKind& kind, const PciDevice& device, bool vgpus);

}  // namespace vfio_agent
