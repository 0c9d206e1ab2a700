// PciDevice: the kernel's facts about one PCI function at one moment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sysfs/device/capabilities.h"
#include "sysfs/device/pci_address.h"
#include "sysfs/fact.h"

namespace vfio_agent {

class ConfigReader;
class Tree;

// One memory or I/O region of the function, from sysfs "resource".
struct Bar {
  int index = 0;            // 0..5, 6 = expansion ROM
  uint64_t size_bytes = 0;  // never 0: unused regions are left out
  bool operator==(const Bar&) const = default;
};

struct PciDevice {
  PciAddress address;
  uint16_t vendor = 0;
  uint16_t device = 0;
  Fact<uint16_t> subsystem_vendor;
  Fact<uint16_t> subsystem_device;
  uint32_t class_code = 0;  // 24 bits: base, sub, interface (0x030200)
  Fact<uint8_t> revision;

  std::optional<std::string> driver;  // nullopt: unbound
  std::optional<int> group;           // IOMMU group; nullopt: no IOMMU translates for it
  std::optional<int> numa_node;       // nullopt where the kernel says -1

  // The bridge directly above; nullopt on a root bus, or where the tree has no device paths
  // (`path` is then empty).
  std::optional<PciAddress> parent;
  // Bridges from the root port down to `parent`; and the name of the host bridge ("pci0000:00").
  std::vector<PciAddress> path;
  std::string root;

  std::optional<PciAddress> physfn;  // set on an SR-IOV virtual function
  std::vector<PciAddress> virtfns;   // set on a physical function whose VFs are enabled
  Fact<int> sriov_total_vfs;
  Fact<bool> vfs_autoprobe;  // of a physical function: host drivers may take VFs as they appear

  Fact<bool> boot_vga;
  Fact<std::string> reset_method;  // "flr bus"; empty: the kernel knows no way; absent: old kernel
  Fact<std::string> power_state;   // "D0", "D3cold", "unknown"
  Fact<bool> d3cold_allowed;       // endpoints only; absent on bridges
  Fact<uint64_t> aer_fatal;        // fatal errors so far; of root ports and what vfio has only
  bool removable = false;          // below a port that leads out of the machine (Thunderbolt)
  std::vector<Bar> bars;
  std::string modalias;                  // "pci:v000010DEd00002330sv…"; empty where absent
  std::optional<std::string> vfio_cdev;  // "vfio0": the name below vfio-dev/
  bool has_override = false;             // the driver_override attribute exists
  Capabilities config;                   // decoded from config space

  // Why some of the facts above are missing: one sentence for each, empty when all is well.
  // A device with errors is still listed; the others are not touched by it.
  std::vector<std::string> errors;

  // By header type, which the class does not tell: an NVSwitch is class 0680 and an endpoint.
  bool IsBridge() const { return config.is_bridge; }
  bool IsVf() const { return physfn.has_value(); }
  uint16_t Class16() const { return static_cast<uint16_t>(class_code >> 8); }

  bool operator==(const PciDevice&) const = default;
};

// Reads one function from sys/bus/pci/devices/<address>.
//
// NotFound: the device went away between listing and reading (hot-unplug); skip it. Everything
// else that is odd is put into `errors` of the returned device. Never reads driver_override or
// sriov_numvfs, whose reads take the device's lock in the kernel (drivers/pci/pci-sysfs.c, iov.c):
// while an unbind blocks in the kernel, that read blocks as well and cannot be killed.
absl::StatusOr<PciDevice> ReadPciDevice(const Tree& tree, ConfigReader& config,
                                        const PciAddress& address);

}  // namespace vfio_agent
