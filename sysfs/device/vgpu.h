// vGPU types of SR-IOV virtual functions, as NVIDIA's driver for vGPU hosts shows them: a virtual
// function that has a type is a guest's device as it is, on the vendor's driver.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sysfs/device/driver_files.h"
#include "sysfs/device/pci_device.h"
#include "sysfs/fact.h"

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
  // The file for which its driver does not answer; empty: it answers. Then `creatable` is what it
  // said last, and `last` the type that it had.
  std::string silent;
  std::optional<int> last;
  bool operator==(const VgpuFunction&) const = default;
};

struct VgpuFacts {
  std::vector<VgpuFunction> functions;  // sorted by address
  std::vector<std::string> skipped;     // what is there and could not be read, one line each
  bool operator==(const VgpuFacts&) const = default;
};

// NVIDIA's virtual functions among `devices` that have a driver with such files. Asks no driver:
// nothing is known of them yet.
VgpuFacts ListVgpus(const Tree& tree, const std::vector<PciDevice>& devices);

// What their drivers are to be asked, and what they have answered.
void AddVgpuFiles(const VgpuFacts& facts, std::vector<DriverFile>& files);
void FillVgpus(const DriverTexts& texts, VgpuFacts& facts);

// What `before` knew of functions whose driver does not answer now.
void KeepVgpus(const VgpuFacts& before, VgpuFacts& now);

// The lines "1145  : NVIDIA L40S-1B" below a heading. `skipped` gets those that are none, by
// `path`.
std::vector<VgpuType> ParseVgpuTypes(std::string_view text, std::string_view path,
                                     std::vector<std::string>& skipped);

// The function's fact, or null.
const VgpuFunction* FindVgpu(const VgpuFacts& facts, const PciAddress& address);

}  // namespace vfio_agent
