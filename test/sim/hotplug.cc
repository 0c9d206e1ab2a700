// The Kernel's bus: devices that are removed, fall off, come back or are plugged in.
#include <cerrno>

#include "test/sim/kernel.h"

namespace vfio_agent::sim {

// Without asking anybody, as when the link goes down. Devices below a bridge go with it.
void Kernel::Vanish(const DevicePtr& device) {
  if (!device->present) return;
  if (const auto below = children_.find(device->facts.address); below != children_.end()) {
    for (const std::string& address : below->second) Vanish(devices_.at(address));
  }
  for (int index = 0; index < device->num_vfs; ++index) {
    const auto vf = devices_.find(VfAddress(*device, index));
    if (vf != devices_.end()) Vanish(vf->second);
  }
  Detach(device);
  device->present = false;
  // A device that comes has a pci_dev of its own, which may go to D3cold.
  if (!device->facts.d3cold_allowed.empty()) device->facts.d3cold_allowed = "1";
  HideDevice(device);
  changed_.notify_all();
}

void Kernel::Appear(const DevicePtr& device, Call& call) {
  const auto parent = devices_.find(device->facts.parent);
  if (parent != devices_.end() && !parent->second->present) Appear(parent->second, call);
  if (device->present) return;
  device->present = true;
  device->fell_off = false;
  device->driver_override.clear();
  ShowDevice(device);
  ShowPhysfnLinks(device);
  if (drivers_autoprobe_) OfferToDrivers(device, call);
}

int Kernel::StoreRemove(const DevicePtr& device, std::string_view text, Call& call) {
  if (!text.starts_with('1')) return text.starts_with('0') ? 0 : EINVAL;
  if (const int error = Lock(device, call)) return error;
  int error = Suffer(device, "remove", call);
  if (error == 0) error = WaitForHolders(device, call);
  if (error == 0) Vanish(device);
  Unlock(device);
  return error > 0 ? error : 0;
}

// Finds what was removed, but not what has fallen off the bus.
int Kernel::StoreRescan(std::string_view text, Call& call) {
  if (!text.starts_with('1')) return text.starts_with('0') ? 0 : EINVAL;
  for (const MachineDevice& facts : machine_.devices) {
    const DevicePtr device = Find(facts.address);
    if (!device->present && !device->fell_off && facts.present) Appear(device, call);
  }
  return 0;
}

}  // namespace vfio_agent::sim
