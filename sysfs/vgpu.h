// vGPU types of SR-IOV virtual functions, as NVIDIA's driver for vGPU hosts shows them: a virtual
// function that has a type is a guest's device as it is, on the vendor's driver.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sysfs/fact.h"
#include "sysfs/pci_device.h"

namespace vfio_agent {

class Tree;

struct VgpuType {
  int id = 0;
  std::string name;  // "NVIDIA L40S-1Q"
  bool operator==(const VgpuType&) const = default;
};

// A virtual function whose driver gives types.
struct VgpuFunction {
  PciAddress address;
  PciAddress physical;
  Fact<int> current;  // 0: none
  // What it could be given now, sorted by id: nothing where the rest of the card has no room.
  std::vector<VgpuType> creatable;
  bool operator==(const VgpuFunction&) const = default;
};

struct VgpuFacts {
  std::vector<VgpuFunction> functions;  // sorted by address
  std::vector<std::string> skipped;     // what is there and could not be read, one line each
  bool operator==(const VgpuFacts&) const = default;
};

// Looks below NVIDIA's virtual functions among `devices` that have a driver, and nowhere else: the
// answers come from that driver.
VgpuFacts ReadVgpuFacts(const Tree& tree, const std::vector<PciDevice>& devices);

// The lines "1145  : NVIDIA L40S-1B" below a heading. `skipped` gets those that are none, by
// `path`.
std::vector<VgpuType> ParseVgpuTypes(std::string_view text, std::string_view path,
                                     std::vector<std::string>& skipped);

// The function's fact, or null.
const VgpuFunction* FindVgpu(const VgpuFacts& facts, const PciAddress& address);

}  // namespace vfio_agent
