#include "test/fuzz/device_rules.h"

#include <algorithm>

#include "test/fuzz/require.h"

namespace vfio_agent {
namespace {

// A driver's name becomes part of paths that are written to and of commands that are printed.
void CheckDriver(const PciDevice& device) {
  if (!device.driver) return;
  const std::string& name = *device.driver;
  Require(!name.empty() && name != "." && name != "..", "a driver's name is a name", name);
  Require(std::ranges::all_of(name,
                              [](unsigned char c) {
                                return std::isalnum(c) != 0 ||
                                       std::string_view("_-+.,:@?").find(static_cast<char>(c)) !=
                                           std::string_view::npos;
                              }),
          "a driver's name can be part of a path and of a command", name);
}

void CheckPlace(const PciDevice& device) {
  Require(device.group.value_or(0) >= 0, "groups are not negative");
  Require(device.numa_node.value_or(0) >= 0, "NUMA nodes are not negative");
  Require(device.parent.has_value() != device.path.empty(), "the path ends at the parent");
  if (device.parent) Require(device.path.back() == *device.parent, "the path ends at the parent");
  Require(!std::ranges::count(device.path, device.address), "no device is above itself");
  Require(device.path.empty() || !device.root.empty(), "a path begins at a host bridge");
}

void CheckBars(const PciDevice& device) {
  int last = -1;
  for (const Bar& bar : device.bars) {
    Require(bar.index > last && bar.index <= 6, "regions are in order, the ROM is the last");
    Require(bar.size_bytes > 0, "a region has a size");
    last = bar.index;
  }
}

// "Unknown" means that something is there and could not be read: somebody must be told of it.
void CheckUnknown(const PciDevice& device) {
  const bool unknown = device.subsystem_vendor.unknown() || device.subsystem_device.unknown() ||
                       device.revision.unknown() || device.sriov_total_vfs.unknown() ||
                       device.boot_vga.unknown() || device.reset_method.unknown() ||
                       device.power_state.unknown();
  Require(!unknown || !device.errors.empty(), "what is unknown is noted");
}

void CheckConfig(const PciDevice& device) {
  const size_t size = device.config.readable_bytes;
  Require(size == 0 || size == 64 || size == 256 || size == 4096,
          "the config space is read whole, in its standard part or in its header");
  Require(size > 0 || !device.errors.empty(), "an unreadable config space is noted");
  Require(!device.IsVf() || !device.config.multifunction, "a VF's header tells of no siblings");
}

}  // namespace

void RequireSoundDevice(const PciDevice& device) {
  Require(device.class_code <= 0xffffff, "a class has 24 bits");
  Require(std::ranges::is_sorted(device.virtfns), "virtual functions are sorted");
  Require(std::ranges::none_of(device.errors, &std::string::empty), "a note says something");
  CheckDriver(device);
  CheckPlace(device);
  CheckBars(device);
  CheckUnknown(device);
  CheckConfig(device);
}

}  // namespace vfio_agent
