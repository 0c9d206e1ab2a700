// The Kernel's mediated devices: the types of a parent, instances, and the groups of these.
#include <algorithm>
#include <cerrno>
#include <charconv>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "test/sim/kernel.h"

namespace vfio_agent::sim {
namespace {

constexpr char kDriverPath[] = "sys/bus/mdev/drivers/nvidia-vgpu-vfio";

std::string TypePath(const Device& device, const std::string& type) {
  return device.path + "/mdev_supported_types/" + type;
}

std::string MdevGroupPath(int number) {
  return absl::StrFormat("sys/kernel/iommu_groups/%d", number);
}

bool IsUuid(std::string_view text) {
  constexpr std::string_view kShape = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  return std::equal(text.begin(), text.end(), kShape.begin(), kShape.end(), [](char c, char s) {
    return s == '-' ? c == '-' : absl::ascii_isxdigit(static_cast<unsigned char>(c));
  });
}

}  // namespace

void Kernel::ShowMdevTypes(const DevicePtr& device) {
  for (const auto& [id, type] : device->facts.mdev_types) {
    const std::string path = TypePath(*device, id);
    const std::string parent = device->facts.address;
    vfs_.Directory(path + "/devices");
    if (!type.name.empty()) vfs_.Text(path + "/name", type.name + "\n");
    vfs_.Text(path + "/device_api", type.api + "\n");
    vfs_.File(path + "/available_instances", Showing([this, parent, id = id] {
                return absl::StrFormat("%d\n", AvailableMdevs(parent, id));
              }));
    vfs_.File(path + "/create", 0200, nullptr,
              [this, device, id = id](std::string_view text, Call& call) {
                return StoreMdevCreate(device, id, text, call);
              });
    vfs_.Link("sys/class/mdev_bus/" + parent, device->path);
    vfs_.Directory(kDriverPath);
    vfs_.Directory("sys/bus/mdev/devices");
  }
}

// The driver that goes takes its instances with it.
void Kernel::HideMdevTypes(const DevicePtr& device) {
  if (device->facts.mdev_types.empty()) return;
  std::vector<std::string> gone;
  for (const auto& [uuid, mdev] : mdevs_) {
    if (mdev.parent == device->facts.address) gone.push_back(uuid);
  }
  for (const std::string& uuid : gone) HideMdev(uuid);
  vfs_.Remove(device->path + "/mdev_supported_types");
  vfs_.Remove("sys/class/mdev_bus/" + device->facts.address);
}

// As NVIDIA's driver: all instances of a device are of one type.
int Kernel::AvailableMdevs(const std::string& parent, const std::string& type) {
  int left = Find(parent)->facts.mdev_types.at(type).instances;
  for (const auto& entry : mdevs_) {
    if (entry.second.parent != parent) continue;
    if (entry.second.type != type) return 0;
    --left;
  }
  return left;
}

// The order of the answers is that of drivers/vfio/mdev/mdev_sysfs.c and mdev_core.c.
int Kernel::StoreMdevCreate(const DevicePtr& device, const std::string& type, std::string_view text,
                            Call& call) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  if (!IsUuid(text)) return EINVAL;
  if (const int error = Suffer(device, "create", call)) return std::max(error, 0);
  const std::string uuid = absl::AsciiStrToLower(std::string(text));
  if (mdevs_.contains(uuid)) return EEXIST;
  if (AvailableMdevs(device->facts.address, type) <= 0) return ENOSPC;
  mdevs_[uuid] = {.parent = device->facts.address,
                  .type = type,
                  .group = FreeGroupNumber(),
                  .vfio_index = TakeVfioIndex()};
  ShowMdev(uuid);
  return 0;
}

void Kernel::ShowMdev(const std::string& uuid) {
  const Mdev& mdev = mdevs_.at(uuid);
  const Device& parent = *Find(mdev.parent);
  const std::string path = parent.path + "/" + uuid;
  vfs_.Link(path + "/mdev_type", TypePath(parent, mdev.type));
  vfs_.Link(path + "/subsystem", "sys/bus/mdev");
  vfs_.Link(path + "/driver", kDriverPath);
  vfs_.File(path + "/remove", 0200, nullptr, [this, uuid](std::string_view text, Call& call) {
    return StoreMdevRemove(uuid, text, call);
  });
  vfs_.Link(TypePath(parent, mdev.type) + "/devices/" + uuid, path);
  vfs_.Link("sys/bus/mdev/devices/" + uuid, path);
  ShowGroup(mdev.group);
  groups_[mdev.group].members.insert(uuid);
  vfs_.Link(MdevGroupPath(mdev.group) + "/devices/" + uuid, path);
  vfs_.Link(path + "/iommu_group", MdevGroupPath(mdev.group));
  // The kernel calls the groups of all devices without an IOMMU of their own so.
  vfs_.Text(MdevGroupPath(mdev.group) + "/name", "vfio-noiommu\n");
  ShowCdev(path, mdev.vfio_index);
  if (!faults_.Take(mdev.parent, "node")) ShowGroupNode(mdev.group);
}

void Kernel::HideMdev(const std::string& uuid) {
  const auto found = mdevs_.find(uuid);
  if (found == mdevs_.end()) return;
  const Mdev mdev = found->second;
  const Device& parent = *Find(mdev.parent);
  mdevs_.erase(found);
  groups_.erase(mdev.group);
  HideCdevNode(mdev.vfio_index);
  ShowGroupNode(mdev.group);
  vfs_.Remove(MdevGroupPath(mdev.group));
  LeaveMdevBus(uuid, mdev);
  vfs_.Remove(parent.path + "/" + uuid);
  changed_.notify_all();
}

// What goes at once when an instance is removed, also where somebody has it open.
void Kernel::LeaveMdevBus(const std::string& uuid, const Mdev& mdev) {
  const Device& parent = *Find(mdev.parent);
  vfs_.Remove("sys/bus/mdev/devices/" + uuid);
  vfs_.Remove(TypePath(parent, mdev.type) + "/devices/" + uuid);
  for (const char* gone : {"/mdev_type", "/driver", "/remove", "/subsystem"}) {
    vfs_.Remove(parent.path + "/" + uuid + gone);
  }
}

// Waits for who has it open, as the kernel does: until then its directory, group, node and place in
// available_instances stay, and its uuid cannot be made again. To end the writer ends no wait.
int Kernel::StoreMdevRemove(const std::string& uuid, std::string_view text, Call& call) {
  unsigned value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc{}) {
    return EINVAL;
  }
  if (value == 0) return 0;
  const auto free = [this, uuid] {
    const auto mdev = mdevs_.find(uuid);
    return mdev == mdevs_.end() || groups_[mdev->second.group].holders.empty();
  };
  if (const auto mdev = mdevs_.find(uuid); mdev != mdevs_.end()) LeaveMdevBus(uuid, mdev->second);
  if (const int error = WaitUntil(free, false, call)) return error;
  HideMdev(uuid);
  return 0;
}

}  // namespace vfio_agent::sim
