#include "iommu/tenancy/record.h"

#include "iommu/plan/made_vfs.h"
#include "iommu/plan/planning.h"

namespace vfio_agent {
namespace {

constexpr char kMaking[] = "vfs";             // SetVfs' `op`
constexpr char kSetting[] = "set-vgpu-type";  // SetVgpuType's

}  // namespace

Record MakeRecord(const PciDevice& device, const std::vector<PciAddress>& members,
                  const std::string& driver_override, const std::string& to, const Record* earlier,
                  const std::string& boot_id) {
  Record record{.address = device.address,
                .vendor = device.vendor,
                .device = device.device,
                .boot_id = boot_id,
                .group = device.group.value_or(-1),
                .members = members,
                .to = to,
                .this_boot = true};
  if (device.d3cold_allowed.known()) record.d3cold_allowed = device.d3cold_allowed.value();
  // On a device without a driver it is what somebody's bind has left, and would keep the host's
  // drivers away for good.
  if (device.driver || !IsVfioDriver(driver_override)) record.driver_override = driver_override;
  const bool known = earlier != nullptr && earlier->this_boot;
  if (known) {
    record.driver = earlier->driver;
    record.driver_override = earlier->driver_override;
    record.d3cold_allowed = earlier->d3cold_allowed;
    record.vfs_autoprobe = earlier->vfs_autoprobe;
  }
  // A host driver that has the device now is where it comes from, whatever was before.
  if (device.driver && !IsOnVfio(device)) record.driver = *device.driver;
  return record;
}

bool HasMadeVfs(const Record& record) {
  return record.this_boot && record.vfs &&
         (record.releasing || record.step == kMaking || record.step == kStepDone);
}

bool HasSetVgpu(const Record& record) {
  return record.this_boot && record.vgpu_type &&
         (record.releasing || record.step == kSetting || record.step == kStepDone);
}

void DisownReplaced(const NodeFacts& facts, Records& records) {
  for (auto& [address, record] : records) {
    const PciDevice* const device = FindDevice(facts, address);
    if (device == nullptr || device->vendor == 0) continue;  // not there, or not to be read
    const bool same = device->vendor == record.vendor && device->device == record.device;
    record.this_boot = record.this_boot && same;
  }
}

void NoteMadeVfs(std::span<const Action> done, Records& records) {
  for (const Action& action : done) {
    const bool making = std::holds_alternative<SetVfs>(action);
    if (!making && !std::holds_alternative<SetVgpuType>(action)) continue;
    const auto record = records.find(*DeviceOf(action));
    if (record != records.end()) record->second.step = making ? kMaking : kSetting;
  }
}

}  // namespace vfio_agent
