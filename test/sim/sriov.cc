// The Kernel's SR-IOV: sriov_numvfs and the virtual functions that it makes.
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>

#include "absl/strings/str_format.h"
#include "test/sim/kernel.h"

namespace vfio_agent::sim {

// By routing id: the PF's own plus offset plus stride for each further one. A function number
// above 7 moves on to the next device number, as ARI does.
std::string Kernel::VfAddress(const Device& physical, int index) const {
  const std::string& address = physical.facts.address;
  const size_t colon = address.rfind(':');
  const size_t bus_at = address.rfind(':', colon - 1) + 1;
  const int bus = std::stoi(address.substr(bus_at, 2), nullptr, 16);
  const int slot = std::stoi(address.substr(colon + 1, 2), nullptr, 16);
  const int function = address.back() - '0';
  const int id = (bus << 8 | slot << 3 | function) + physical.facts.sriov_offset +
                 index * physical.facts.sriov_stride;
  return absl::StrFormat("%s%02x:%02x.%x", address.substr(0, bus_at), id >> 8, (id >> 3) & 0x1f,
                         id & 7);
}

void Kernel::ShowSriov(const DevicePtr& device) {
  const MachineDevice& facts = device->facts;
  if (facts.sriov_total_vfs == 0) return;
  const std::string path = device->path + "/sriov_";
  vfs_.Text(path + "totalvfs", absl::StrFormat("%d\n", facts.sriov_total_vfs));
  vfs_.Text(path + "offset", absl::StrFormat("%d\n", facts.sriov_offset));
  vfs_.Text(path + "stride", absl::StrFormat("%d\n", facts.sriov_stride));
  vfs_.File(path + "numvfs", 0644,
            Showing([device] { return absl::StrFormat("%d\n", device->num_vfs); }),
            [this, device](std::string_view text, Call& call) {
              return StoreNumVfs(device, text, call);
            });
  vfs_.File(path + "drivers_autoprobe", 0644,
            Showing([device] { return std::string(device->vfs_autoprobe ? "1\n" : "0\n"); }),
            [device](std::string_view text, Call&) {
              device->vfs_autoprobe = !text.starts_with('0');
              return 0;
            });
  device->num_vfs = facts.sriov_num_vfs;
}

// The links between a PF and its VFs, in both directions; called on either of them.
void Kernel::ShowPhysfnLinks(const DevicePtr& device) {
  const auto physical = devices_.find(device->facts.physfn);
  if (physical == devices_.end() || !physical->second->present || !device->present) return;
  vfs_.Link(device->path + "/physfn", physical->second->path);
  for (int index = 0; index < physical->second->num_vfs; ++index) {
    if (VfAddress(*physical->second, index) != device->facts.address) continue;
    vfs_.Link(absl::StrFormat("%s/virtfn%d", physical->second->path, index), device->path);
  }
}

int Kernel::StoreNumVfs(const DevicePtr& device, std::string_view text, Call& call) {
  int wanted = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), wanted);
  if (failed != std::errc{} || wanted < 0) return EINVAL;
  if (wanted > device->facts.sriov_total_vfs) return ERANGE;
  if (const int error = Lock(device, call)) return error;
  int error = Suffer(device, "vfs", call);
  const auto driver = drivers_.find(device->driver);
  if (error == 0 && wanted != device->num_vfs) {
    // vfio-pci offers no way to make VFs unless its enable_sriov parameter is set.
    if (driver == drivers_.end() || driver->second.vfio) {
      error = ENOENT;
    } else if (wanted == 0) {
      error = DisableVfs(device, call);
    } else if (device->num_vfs > 0) {
      error = EBUSY;
    } else {
      EnableVfs(device, wanted, call);
    }
  }
  Unlock(device);
  return std::max(error, 0);
}

DevicePtr Kernel::MakeVf(const Device& physical, int index) const {
  auto vf = std::make_shared<Device>();
  MachineDevice& facts = vf->facts;
  facts = physical.facts;
  facts.address = VfAddress(physical, index);
  facts.physfn = physical.facts.address;
  facts.sysfs_path.clear();
  facts.driver = physical.facts.sriov_vf_driver;
  facts.attributes.clear();
  facts.boot_vga.reset();
  facts.sriov_total_vfs = facts.sriov_num_vfs = 0;
  if (facts.sriov_vf_device != 0) facts.device = facts.sriov_vf_device;
  if (facts.group) facts.group = FreeGroupNumber();
  if (facts.reset_method) facts.reset_method = "flr";
  vf->path = physical.path.substr(0, physical.path.rfind('/') + 1) + facts.address;
  vf->present = true;
  return vf;
}

void Kernel::EnableVfs(const DevicePtr& device, int count, Call& call) {
  device->num_vfs = count;
  for (int index = 0; index < count; ++index) {
    // A machine file may list VFs itself; they stay as they are.
    if (devices_.contains(VfAddress(*device, index))) continue;
    const DevicePtr vf = MakeVf(*device, index);
    const MachineDevice& facts = vf->facts;
    devices_[facts.address] = vf;
    ShowDevice(vf);
    ShowPhysfnLinks(vf);
    if (!device->vfs_autoprobe) continue;
    if (!facts.driver.empty()) {
      Driver& driver = LoadDriver(facts.driver);
      if (!driver.vfio) driver.ids.insert({facts.vendor, facts.device});
    }
    OfferToDrivers(vf, call);
  }
}

// Waits, as an unbind does, for a VF that is open through vfio.
int Kernel::DisableVfs(const DevicePtr& device, Call& call) {
  for (int index = 0; index < device->num_vfs; ++index) {
    const DevicePtr vf = Find(VfAddress(*device, index));
    if (vf == nullptr || !vf->present) continue;
    if (const int error = WaitForHolders(vf, call)) return error;
    Vanish(vf);
    devices_.erase(vf->facts.address);
    vfs_.Remove(absl::StrFormat("%s/virtfn%d", device->path, index));
  }
  device->num_vfs = 0;
  return 0;
}

}  // namespace vfio_agent::sim
