// The Kernel's IOMMU groups, and the nodes of vfio below dev/vfio.
#include <sys/sysmacros.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "test/sim/kernel.h"

namespace vfio_agent::sim {
namespace {

// The kernel's choice at boot; these are what the recorded nodes had.
constexpr unsigned kGroupMajor = 246;
constexpr unsigned kCdevMajor = 242;

constexpr char kNoIommuName[] = "vfio-noiommu";

std::string GroupPath(int number) { return absl::StrFormat("sys/kernel/iommu_groups/%d", number); }

}  // namespace

void Kernel::ShowGroup(int number) {
  const std::string path = GroupPath(number);
  if (const auto stated = machine_.groups.find(number); stated != machine_.groups.end()) {
    groups_[number].facts = stated->second;
  }
  const MachineGroup& facts = groups_[number].facts;
  vfs_.Directory(path + "/devices");
  if (!facts.name.empty()) vfs_.Text(path + "/name", facts.name + "\n");
  vfs_.File(path + "/type", 0644, Showing([type = facts.type] { return type + "\n"; }),
            [](std::string_view, Call&) { return EBUSY; });
  std::string reserved;
  for (const std::string& region : facts.reserved) reserved += region + "\n";
  // The window of MSI writes, which every IOMMU of a PC reserves.
  if (facts.reserved.empty()) reserved = "0x00000000fee00000 0x00000000feefffff msi\n";
  vfs_.Text(path + "/reserved_regions", reserved);
}

void Kernel::JoinGroup(const Device& device) {
  const int number = *device.facts.group;
  const std::string& address = device.facts.address;
  if (groups_[number].members.empty()) ShowGroup(number);
  groups_[number].members.insert(address);
  vfs_.Link(GroupPath(number) + "/devices/" + address, device.path);
  vfs_.Link(device.path + "/iommu_group", GroupPath(number));
  if (IommuPath().empty()) return;
  vfs_.Link(device.path + "/iommu", IommuPath());
  vfs_.Link(IommuPath() + "/devices/" + address, device.path);
}

void Kernel::LeaveGroup(const Device& device) {
  const int number = *device.facts.group;
  const auto group = groups_.find(number);
  vfs_.Remove(device.path + "/iommu_group");
  vfs_.Remove(IommuPath() + "/devices/" + device.facts.address);
  if (group == groups_.end()) return;
  group->second.members.erase(device.facts.address);
  vfs_.Remove(GroupPath(number) + "/devices/" + device.facts.address);
  if (!group->second.members.empty()) return;
  vfs_.Remove(GroupPath(number));
  groups_.erase(group);
}

int Kernel::FreeGroupNumber() const {
  int number = 0;
  while (groups_.contains(number)) ++number;
  return number;
}

// The node is there for as long as any member is bound to a vfio driver.
void Kernel::ShowGroupNode(int number) {
  const auto group = groups_.find(number);
  const bool noiommu = group != groups_.end() && group->second.facts.name == kNoIommuName;
  const bool wanted = group != groups_.end() &&
                      std::any_of(group->second.members.begin(), group->second.members.end(),
                                  [&](const std::string& member) {
                                    return mdevs_.contains(member) || Find(member)->vfio_index >= 0;
                                  });
  const std::string name = absl::StrFormat("%s%d", noiommu ? "noiommu-" : "", number);
  const std::string below = "sys/devices/virtual/vfio/" + name;
  if (wanted) {
    vfs_.Character("dev/vfio/" + name, 0600, makedev(kGroupMajor, static_cast<unsigned>(number)));
    vfs_.Text(below + "/dev", absl::StrFormat("%d:%d\n", kGroupMajor, number));
    vfs_.Link("sys/class/vfio/" + name, below);
    return;
  }
  for (const std::string& gone : {"dev/vfio/" + name, below, "sys/class/vfio/" + name}) {
    vfs_.Remove(gone);
  }
  vfs_.Remove(absl::StrFormat("dev/vfio/noiommu-%d", number));
}

void Kernel::AddVfioFiles(const DevicePtr& device) {
  if (!device->facts.group) {  // unsafe no-IOMMU mode: vfio makes a group of its own
    const int number = FreeGroupNumber();
    groups_[number].facts.name = kNoIommuName;
    device->facts.group = number;
    JoinGroup(*device);
  }
  device->vfio_index = TakeVfioIndex();
  if (!faults_.Take(device->facts.address, "node")) ShowGroupNode(*device->facts.group);
  ShowCdev(device->path, device->vfio_index);
}

int Kernel::TakeVfioIndex() {
  int index = 0;
  for (const int used : vfio_indices_) {  // the lowest free one: the set is in order
    if (used != index) break;
    ++index;
  }
  vfio_indices_.insert(index);
  return index;
}

void Kernel::ShowCdev(const std::string& path, int index) {
  if (machine_.cdevs == Cdevs::kNone) return;
  const std::string name = absl::StrFormat("vfio%d", index);
  vfs_.Directory(path + "/vfio-dev/" + name);
  if (machine_.cdevs == Cdevs::kSysfsOnly) return;
  vfs_.Text(path + "/vfio-dev/" + name + "/dev", absl::StrFormat("%d:%d\n", kCdevMajor, index));
  vfs_.Character("dev/vfio/devices/" + name, 0600,
                 makedev(kCdevMajor, static_cast<unsigned>(index)));
}

void Kernel::HideCdevNode(int index) {
  vfs_.Remove(absl::StrFormat("dev/vfio/devices/vfio%d", index));
  if (const Node* cdevs = vfs_.Find("dev/vfio/devices"); cdevs && cdevs->children.empty()) {
    vfs_.Remove("dev/vfio/devices");  // devtmpfs takes away directories that it emptied
  }
  vfio_indices_.erase(index);
}

void Kernel::RemoveVfioFiles(const DevicePtr& device) {
  const int number = *device->facts.group;
  HideCdevNode(std::exchange(device->vfio_index, -1));
  vfs_.Remove(device->path + "/vfio-dev");
  const auto group = groups_.find(number);
  const bool noiommu = group != groups_.end() && group->second.facts.name == kNoIommuName;
  if (noiommu) {
    LeaveGroup(*device);
    device->facts.group.reset();
  }
  ShowGroupNode(number);
}

}  // namespace vfio_agent::sim
