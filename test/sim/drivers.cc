// The Kernel's drivers: their directories, and the links between them and their devices.
#include <sys/sysmacros.h>

#include <algorithm>
#include <utility>

#include "test/sim/kernel.h"

namespace vfio_agent::sim {
namespace {

std::string DriverPath(const std::string& name) { return "sys/bus/pci/drivers/" + name; }

// What a driver adds below its devices ("nvme/nvme0/...") in contrast to the bus's attributes.
bool MadeByDriver(const std::string& attribute) { return attribute.find('/') != std::string::npos; }

}  // namespace

Driver& Kernel::LoadDriver(const std::string& name) {
  if (const auto loaded = drivers_.find(name); loaded != drivers_.end()) return loaded->second;
  const Driver driver = MakeDriver(name);
  driver_order_.push_back(name);
  const std::string path = DriverPath(name);
  vfs_.File(path + "/bind", 0200, nullptr, [this, name](std::string_view text, Call& call) {
    return StoreBind(name, text, call);
  });
  vfs_.File(path + "/unbind", 0200, nullptr, [this, name](std::string_view text, Call& call) {
    return StoreUnbind(name, text, call);
  });
  vfs_.File(path + "/new_id", 0200, nullptr, [this, name](std::string_view text, Call& call) {
    return StoreNewId(name, text, true, call);
  });
  vfs_.File(path + "/remove_id", 0200, nullptr, [this, name](std::string_view text, Call& call) {
    return StoreNewId(name, text, false, call);
  });
  vfs_.File(path + "/uevent", 0200, nullptr, [](std::string_view, Call&) { return 0; });
  const bool builtin = name == "pcieport" || (driver.vfio && machine_.vfio_pci == "builtin");
  if (!builtin) {
    vfs_.Link(path + "/module", "sys/module/" + driver.module);
    vfs_.Text("sys/module/" + driver.module + "/initstate", "live\n");
    vfs_.Link("sys/module/" + driver.module + "/drivers/pci:" + name, path);
  }
  if (driver.vfio) {
    constexpr unsigned kMiscMajor = 10;
    constexpr unsigned kVfioMinor = 196;
    vfs_.Character("dev/vfio/vfio", 0666, makedev(kMiscMajor, kVfioMinor));
    constexpr unsigned kIommufdMinor = 260;
    if (machine_.cdevs == Cdevs::kFull) {
      vfs_.Character("dev/iommu", 0660, makedev(kMiscMajor, kIommufdMinor));
    }
    for (const char* parameter : {"disable_idle_d3", "nointxmask", "enable_sriov"}) {
      vfs_.Text("sys/module/" + driver.module + "/parameters/" + parameter, "N\n");
    }
  }
  return drivers_[name] = driver;
}

void Kernel::UnloadDriver(const std::string& name) {
  for (const auto& [address, device] : devices_) {
    if (device->driver == name) Detach(device);
  }
  vfs_.Remove(DriverPath(name));
  if (const auto driver = drivers_.find(name); driver != drivers_.end()) {
    vfs_.Remove("sys/module/" + driver->second.module);
    drivers_.erase(driver);
  }
  driver_order_.erase(std::remove(driver_order_.begin(), driver_order_.end(), name),
                      driver_order_.end());
}

void Kernel::Attach(const DevicePtr& device, const std::string& name) {
  device->driver = name;
  vfs_.Link(device->path + "/driver", DriverPath(name));
  vfs_.Link(DriverPath(name) + "/" + device->facts.address, device->path);
  if (drivers_.at(name).vfio) AddVfioFiles(device);
  if (name == device->facts.driver) {
    for (const auto& [attribute, text] : device->facts.attributes) {
      if (MadeByDriver(attribute)) vfs_.Text(device->path + "/" + attribute, text);
    }
    ShowMdevTypes(device);
    ShowVgpu(device);
  }
  changed_.notify_all();
}

void Kernel::Detach(const DevicePtr& device) {
  if (device->driver.empty()) return;
  const std::string name = std::exchange(device->driver, "");
  vfs_.Remove(device->path + "/driver");
  vfs_.Remove(DriverPath(name) + "/" + device->facts.address);
  if (drivers_.at(name).vfio) RemoveVfioFiles(device);
  HideMdevTypes(device);
  HideVgpu(device);
  for (const auto& entry : device->facts.attributes) {
    if (MadeByDriver(entry.first)) {
      vfs_.Remove(device->path + "/" + entry.first.substr(0, entry.first.find('/')));
    }
  }
  changed_.notify_all();
}

}  // namespace vfio_agent::sim
