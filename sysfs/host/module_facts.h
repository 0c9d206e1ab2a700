// ModuleFacts: which kernel modules could be loaded, and which vfio drivers they offer.
#pragma once

#include <string>
#include <vector>

namespace vfio_agent {

class Tree;

// One "alias vfio_pci:v…d… module" line: the module has a vfio driver made for these devices.
struct VfioAlias {
  std::string pattern;  // shell pattern over a device's modalias, "vfio_pci:" replaced by "pci:"
  std::string module;
  bool operator==(const VfioAlias&) const = default;
};

struct ModuleFacts {
  std::string release;              // proc/sys/kernel/osrelease; empty where unreadable
  bool vfio_pci_installed = false;  // vfio-pci is listed in modules.dep or modules.builtin
  std::vector<VfioAlias> vfio_aliases;
  bool operator==(const ModuleFacts&) const = default;
};

// Reads lib/modules/<release>/{modules.dep,modules.builtin,modules.alias} below the root. Missing
// files (a container without the host's /lib/modules) give an empty answer, not an error.
ModuleFacts ReadModuleFacts(const Tree& tree);

}  // namespace vfio_agent
