// The Kernel's driver core: what writes to bind, unbind, drivers_probe, driver_override and
// new_id do, and what they answer.
#include <algorithm>
#include <cerrno>
#include <sstream>

#include "test/sim/kernel.h"

namespace vfio_agent::sim {
namespace {

constexpr size_t kPageBytes = 4096;

}  // namespace

// driver_override beats every id table: only the named driver matches, and it always does.
bool Kernel::Matches(const Driver& driver, const Device& device) const {
  if (!device.driver_override.empty()) return driver.name == device.driver_override;
  return TakesById(driver, device.facts);
}

// What the driver's own probe function answers.
int Kernel::ProbeError(const Driver& driver, const Device& device) const {
  if (driver.vfio) {
    if (device.facts.is_bridge) return EINVAL;
    if (!device.facts.group && machine_.noiommu != "Y") return EINVAL;
    if (device.num_vfs > 0) return EBUSY;
    return 0;
  }
  if (driver.name == "pci-stub") return 0;
  return TakesById(driver, device.facts) ? 0 : ENODEV;
}

// 0: bound; > 0: the driver declined; < 0: the driver core refused to ask it. Only the last is
// told to a writer of drivers_probe.
int Kernel::ProbeDriver(const DevicePtr& device, const std::string& name, Call& call) {
  const bool own_dma = drivers_.at(name).vfio || device->facts.is_bridge;
  if (!own_dma && Held(*device)) return -EINVAL;  // the group's DMA is owned by user space
  const int suffered = Suffer(device, "probe", call);
  if (suffered == EINTR) return -EINTR;
  if (suffered != 0) return std::max(suffered, 0);
  const auto driver = drivers_.find(name);
  if (driver == drivers_.end()) return ENODEV;  // unloaded while we waited
  const int error = ProbeError(driver->second, *device);
  if (error == 0) Attach(device, name);
  return error;
}

// The driver of the machine file is asked first, then the others in the order of loading. One
// whose probe fails leaves the next to try.
int Kernel::OfferToDrivers(const DevicePtr& device, Call& call) {
  std::vector<std::string> order = driver_order_;
  std::stable_partition(order.begin(), order.end(),
                        [&](const std::string& name) { return name == device->facts.driver; });
  for (const std::string& name : order) {
    const auto driver = drivers_.find(name);
    if (driver == drivers_.end() || !Matches(driver->second, *device)) continue;
    const int error = ProbeDriver(device, name, call);
    if (error < 0) return -error;
    if (!device->driver.empty()) return 0;
  }
  return 0;
}

// Succeeds also when no driver took the device: a writer must look at the driver link.
int Kernel::StoreProbe(std::string_view text, Call& call) {
  const DevicePtr device = FindWritten(text);
  if (device == nullptr) return ENODEV;
  if (const int error = Lock(device, call)) return error;
  int error = Suffer(device, "drivers_probe", call);
  if (error == 0 && device->driver.empty()) error = OfferToDrivers(device, call);
  Unlock(device);
  return std::max(error, 0);
}

int Kernel::StoreBind(const std::string& name, std::string_view text, Call& call) {
  const DevicePtr device = FindWritten(text);
  const auto driver = drivers_.find(name);
  if (device == nullptr || driver == drivers_.end()) return ENODEV;
  if (!Matches(driver->second, *device)) return ENODEV;
  if (const int error = Lock(device, call)) return error;
  int error = Suffer(device, "bind", call);
  if (error == 0) {
    error = device->driver.empty() ? std::abs(ProbeDriver(device, name, call)) : EBUSY;
  }
  Unlock(device);
  return std::max(error, 0);
}

int Kernel::StoreUnbind(const std::string& name, std::string_view text, Call& call) {
  const DevicePtr device = FindWritten(text);
  if (device == nullptr || device->driver != name) return ENODEV;
  if (const int error = Lock(device, call)) return error;
  int error = Suffer(device, "unbind", call);
  // Two writers may have waited for the lock; the second finds nothing left to do.
  if (error == 0 && device->driver == name) error = Release(device, call);
  Unlock(device);
  return std::max(error, 0);
}

int Kernel::Release(const DevicePtr& device, Call& call) {
  if (const int error = WaitForHolders(device, call)) return error;
  if (device->present) Detach(device);
  return 0;
}

int Kernel::StoreOverride(const DevicePtr& device, std::string_view text, Call& call) {
  if (text.size() >= kPageBytes - 1) return EINVAL;
  if (const int error = Lock(device, call)) return error;
  const int error = Suffer(device, "override", call);
  if (error == 0) {
    // Up to a newline or a NUL; nothing before it clears the override.
    device->driver_override =
        std::string(text.substr(0, text.find_first_of(std::string("\n\0", 2))));
  }
  Unlock(device);
  return std::max(error, 0);
}

int Kernel::StoreNewId(const std::string& name, std::string_view text, bool add, Call& call) {
  std::istringstream in{std::string(text)};
  unsigned vendor = 0;
  unsigned device_id = 0;
  if (!(in >> std::hex >> vendor >> device_id)) return EINVAL;
  const auto driver = drivers_.find(name);
  if (driver == drivers_.end()) return ENODEV;
  const std::pair<uint16_t, uint16_t> id(static_cast<uint16_t>(vendor),
                                         static_cast<uint16_t>(device_id));
  if (!add) return driver->second.ids.erase(id) > 0 ? 0 : ENODEV;
  if (!driver->second.ids.insert(id).second) return EEXIST;
  for (const auto& entry : std::map(devices_.begin(), devices_.end())) {
    const DevicePtr& device = entry.second;
    if (!device->present || !device->driver.empty() || !Matches(driver->second, *device)) continue;
    if (const int error = ProbeDriver(device, name, call); error < 0) return -error;
  }
  return 0;
}

}  // namespace vfio_agent::sim
