// Record: what the journal keeps of one device that the agent has taken, or is about to take.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "iommu/plan/action.h"
#include "sysfs/device/pci_device.h"

namespace vfio_agent {

struct NodeFacts;

// Where a plan stood when the record was written.
inline constexpr char kStepNoted[] = "noted";  // before the first write
inline constexpr char kStepDone[] = "done";    // all steps carried out; else the `op` under way

struct Record {
  PciAddress address;
  uint16_t vendor = 0;
  uint16_t device = 0;
  std::string boot_id;                 // the boot in which the device was taken
  int group = 0;                       // the group's number in that boot
  std::vector<PciAddress> members;     // the group's endpoints then, sorted
  std::string driver;                  // the one it came from; empty: it had none
  std::string driver_override;         // its driver_override before; empty: none
  std::optional<bool> d3cold_allowed;  // what it was before; nullopt: no such attribute
  std::string to;                      // the vfio driver that it was to have
  bool releasing = false;              // on the way back
  std::string step = kStepNoted;       // about to be carried out
  bool this_boot = false;              // boot_id is that of the running kernel; not in the file
  // Of a physical function whose VFs were made by this agent, or are about to be: how many, and
  // what sriov_drivers_autoprobe was before. It had none then.
  std::optional<int> vfs;
  std::optional<bool> vfs_autoprobe;
  // Of a virtual function that was given a vGPU type by this agent, or is about to be: the type's
  // id and name. It had none then.
  std::optional<int> vgpu_type;
  std::string vgpu_name;

  // The guests' by our doing: every step of the bind was carried out in this boot.
  bool IsTaken() const { return this_boot && !releasing && step == kStepDone; }
  // A plan of this boot that was cut off.
  bool IsUnfinished() const { return this_boot && (releasing || step != kStepDone); }
  bool operator==(const Record&) const = default;
};
// True where VFs of the physical function are, or were, this agent's: their making had begun.
bool HasMadeVfs(const Record& record);
// True where the vGPU type is, or was, this agent's: its write had begun.
bool HasSetVgpu(const Record& record);
using Records = std::map<PciAddress, Record>;

// A card that was put into a taken one's place is not what the record is about: it counts as one of
// an earlier boot.
void DisownReplaced(const NodeFacts& facts, Records& records);

// The record of `device` before the first write to it. What an earlier record of this boot says
// of the device's state before us stays: an override of "vfio-pci" is our own by now.
// `driver_override`: its text as it reads now.
Record MakeRecord(const PciDevice& device, const std::vector<PciAddress>& members,
                  const std::string& driver_override, const std::string& to, const Record* earlier,
                  const std::string& boot_id);

}  // namespace vfio_agent
