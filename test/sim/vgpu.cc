// The Kernel's vGPU types of virtual functions, as NVIDIA's driver for vGPU hosts gives them.
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <utility>

#include "absl/strings/str_format.h"
#include "test/sim/kernel.h"

namespace vfio_agent::sim {

// Below the functions that the driver has; the physical one has no such directory.
void Kernel::ShowVgpu(const DevicePtr& device) {
  if (device->facts.vgpu_types.empty() || device->facts.physfn.empty()) return;
  const std::string path = device->path + "/nvidia";
  vfs_.File(path + "/creatable_vgpu_types",
            Showing([this, device] { return CreatableVgpus(*device); }));
  vfs_.File(path + "/current_vgpu_type", 0644,
            Showing([device] { return absl::StrFormat("%d\n", device->vgpu_type); }),
            [this, device](std::string_view text, Call& call) {
              return StoreVgpuType(device, text, call);
            });
}

void Kernel::HideVgpu(const DevicePtr& device) {
  if (std::exchange(device->vgpu_type, 0) != 0) RemoveVfioFiles(device);
  vfs_.Remove(device->path + "/nvidia");
}

// As the driver does unless it is told otherwise: all vGPUs of a card have one size of memory.
bool Kernel::HasVgpuRoom(const Device& device, const MachineVgpuType& type) {
  int left = device.facts.vgpu_memory;
  for (const auto& entry : devices_) {
    const Device& other = *entry.second;
    if (other.facts.physfn != device.facts.physfn || other.vgpu_type == 0) continue;
    const MachineVgpuType& taken = other.facts.vgpu_types.at(other.vgpu_type);
    if (taken.size != type.size) return false;
    left -= taken.size;
  }
  return device.vgpu_type == 0 && type.size <= left;
}

std::string Kernel::CreatableVgpus(const Device& device) {
  std::string text = "ID    : vGPU Name\n";
  for (const auto& [id, type] : device.facts.vgpu_types) {
    if (HasVgpuRoom(device, type)) text += absl::StrFormat("%-5d : %s\n", id, type.name);
  }
  return text;
}

// With a type the function is a device of vfio's, on the driver that it had.
int Kernel::StoreVgpuType(const DevicePtr& device, std::string_view text, Call& call) {
  int wanted = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), wanted).ec != std::errc{}) {
    return EINVAL;
  }
  if (const int error = Suffer(device, "vgpu", call)) return std::max(error, 0);
  if (wanted == device->vgpu_type) return 0;
  if (Held(*device)) return EPERM;
  if (wanted == 0) {
    device->vgpu_type = 0;
    RemoveVfioFiles(device);
  } else {
    const auto type = device->facts.vgpu_types.find(wanted);
    if (type == device->facts.vgpu_types.end()) return EINVAL;
    if (!HasVgpuRoom(*device, type->second)) return EPERM;
    device->vgpu_type = wanted;
    AddVfioFiles(device);
  }
  changed_.notify_all();
  return 0;
}

}  // namespace vfio_agent::sim
