// Mediated devices (mdev): slices of a device that its own driver makes and gives to guests, as the
// kernel shows them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sysfs/device/driver_files.h"
#include "sysfs/device/pci_device.h"

namespace vfio_agent {

class Tree;

struct MdevType {
  std::string id;                // its directory: "nvidia-222"
  std::string name;              // "GRID T4-1Q"; empty where the driver gives none
  std::optional<int> available;  // how many more the kernel would make; nullopt: it does not say
  bool operator==(const MdevType&) const = default;
};

// A PCI function whose driver makes mediated devices.
struct MdevParent {
  PciAddress address;
  std::vector<MdevType> types;  // sorted by id; only those that vfio-pci guests can use
  // The file for which its driver does not answer; empty: it answers. Then the types are those that
  // it said last, and there is room for none of them.
  std::string silent;
  bool operator==(const MdevParent&) const = default;
};

struct MdevInstance {
  std::string uuid;                  // lower case
  std::optional<PciAddress> parent;  // nullopt: not below a PCI function
  std::string type;                  // the type's id; empty where it cannot be read
  std::optional<int> group;          // its own IOMMU group
  std::optional<std::string> driver;
  std::optional<std::string> cdev;  // "vfio0": the name below vfio-dev/
  bool operator==(const MdevInstance&) const = default;
};

struct MdevFacts {
  std::vector<MdevParent> parents;      // sorted by address
  std::vector<MdevInstance> instances;  // sorted by uuid
  std::vector<std::string> skipped;     // what is there and was not taken, one line each
  bool operator==(const MdevFacts&) const = default;
};

// Looks at sys/class/mdev_bus and sys/bus/mdev/devices: two directories on nodes without any. Asks
// no driver: of the types only the ids are known.
MdevFacts ListMdevs(const Tree& tree);

// What the drivers of the parents, which are among `devices`, are to be asked, and what they have
// answered.
void AddMdevFiles(const MdevFacts& facts, const std::vector<PciDevice>& devices,
                  std::vector<DriverFile>& files);
void FillMdevs(const DriverTexts& texts, MdevFacts& facts);

// What `before` knew of parents whose driver does not answer now.
void KeepMdevs(const MdevFacts& before, MdevFacts& now);

// "83b8f4f2-509f-382f-3c1e-e6bfe0fa1001": how the kernel names an instance.
bool IsUuid(std::string_view text);

// True for a uuid with the mark of those that this program gives (iommu/mdev/mdev.h).
bool HasOwnMark(std::string_view uuid);

// The parent's fact at `address`, and the type of that id or else of that name; null for none.
const MdevParent* FindMdevParent(const MdevFacts& facts, const PciAddress& address);
const MdevType* FindMdevType(const MdevParent& parent, std::string_view id_or_name);
const MdevInstance* FindMdev(const MdevFacts& facts, std::string_view uuid);

}  // namespace vfio_agent
