#include "deviceplugin/offer/verify.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_format.h"
#include "iommu/code.h"
#include "iommu/plan/planning.h"
#include "sysfs/paths.h"
#include "sysfs/status.h"
#include "sysfs/tree.h"

namespace vfio_agent {
namespace {

absl::Status Changed(const OfferedUnit& unit, Code code, const std::string& text) {
  return absl::FailedPreconditionError(
      absl::StrFormat("%s: %s: %s", unit.id, CodeName(code), text));
}

// The kernel makes it for what a vfio driver has, whatever the driver's name.
bool HasVfioDevice(const Tree& tree, const std::string& member) {
  const auto names = tree.List(absl::StrFormat("%s/%s/vfio-dev", kDevicesDir, member));
  return names.ok() && !names->empty();
}

absl::Status VerifyDriver(const Tree& tree, const TreeDir& device, const OfferedUnit& unit,
                          const std::string& member) {
  const auto driver = device.ReadLinkName("driver");
  if (driver.ok()) {
    // pci-stub holds a device for nobody, so the kernel lets a guest have the rest of its group.
    const bool named = std::ranges::find(unit.addresses, member) != unit.addresses.end();
    if (IsVfioDriver(*driver) || HasVfioDevice(tree, member)) return absl::OkStatus();
    if (*driver == "pci-stub" && !named) return absl::OkStatus();
    return Changed(unit, Code::kDriverChanged,
                   absl::StrFormat("%s is bound to %s", member, *driver));
  }
  if (!absl::IsNotFound(driver.status())) {
    return Changed(
        unit, Code::kDriverChanged,
        absl::StrFormat("the driver of %s cannot be read: %s", member, driver.status().message()));
  }
  if (std::ranges::find(unit.addresses, member) == unit.addresses.end()) return absl::OkStatus();
  return Changed(unit, Code::kDriverChanged, absl::StrFormat("%s is bound to no driver", member));
}

absl::Status VerifyGroup(const TreeDir& device, const OfferedUnit& unit,
                         const std::string& member) {
  const auto group = device.ReadLinkName("iommu_group");
  if (absl::IsNotFound(group.status())) {
    return Changed(unit, Code::kGroupChanged,
                   absl::StrFormat("%s is in no IOMMU group now", member));
  }
  if (!group.ok()) {
    return Changed(unit, Code::kGroupChanged,
                   absl::StrFormat("the IOMMU group of %s cannot be read: %s", member,
                                   Message(group.status())));
  }
  for (const int own : GroupsOf(unit)) {
    if (*group == absl::StrFormat("%d", own)) return absl::OkStatus();
  }
  return Changed(
      unit, Code::kGroupChanged,
      absl::StrFormat("%s is in IOMMU group %s now, was in %d", member, *group, unit.group));
}

// Its directory is opened once for both links.
absl::Status VerifyMember(const Tree& tree, const OfferedUnit& unit, const std::string& member) {
  const auto device = TreeDir::Open(tree, absl::StrFormat("%s/%s", kDevicesDir, member));
  if (absl::IsNotFound(device.status())) {
    return Changed(unit, Code::kDeviceGone, absl::StrFormat("%s is not on the bus", member));
  }
  if (!device.ok()) {
    return Changed(unit, Code::kDeviceGone,
                   absl::StrFormat("%s cannot be read: %s", member, Message(device.status())));
  }
  const absl::Status status = VerifyGroup(*device, unit, member);
  return status.ok() ? VerifyDriver(tree, *device, unit, member) : status;
}

// Who removed the instance may have made another of its name.
absl::Status VerifyMdev(const Tree& tree, const OfferedUnit& unit) {
  const auto device = TreeDir::Open(tree, MdevDir(unit.id));
  if (!device.ok()) {
    return Changed(
        unit, Code::kDeviceGone,
        absl::StrFormat("the mediated device is not there: %s", Message(device.status())));
  }
  const auto type = device->ReadLinkName("mdev_type");
  if (!type.ok() || *type != unit.mdev_type) {
    return Changed(unit, Code::kGroupChanged,
                   absl::StrFormat("it is of type %s now, was of %s", type.ok() ? *type : "unknown",
                                   unit.mdev_type));
  }
  RETURN_IF_ERROR(VerifyGroup(*device, unit, unit.id));
  if (device->ReadLinkName("driver").ok()) return absl::OkStatus();
  return Changed(unit, Code::kDriverChanged, "it is bound to no driver");
}

absl::StatusOr<PciAddress> CardOf(const TreeDir& function) {
  ASSIGN_OR_RETURN(const std::string physical, function.ReadLinkName("physfn"));
  return PciAddress::Parse(physical);
}

// The type may have been changed since: a guest would get another share of the card, or none.
absl::Status VerifyVgpu(const Tree& tree, const OfferedUnit& unit, const AskDrivers& ask) {
  const auto address = PciAddress::Parse(unit.id);
  if (!address.ok()) return address.status();
  const auto device = TreeDir::Open(tree, DeviceDir(*address));
  if (!device.ok()) {
    return Changed(
        unit, Code::kDeviceGone,
        absl::StrFormat("the virtual function cannot be read: %s", Message(device.status())));
  }
  RETURN_IF_ERROR(VerifyGroup(*device, unit, unit.id));
  if (!device->ReadLinkName("driver").ok()) {
    return Changed(unit, Code::kDriverChanged, "it is bound to no driver");
  }
  const auto card = CardOf(*device);
  if (!card.ok()) {
    return Changed(
        unit, Code::kDriverChanged,
        absl::StrFormat("it is no virtual function any more: %s", Message(card.status())));
  }
  const std::string path = CurrentVgpuPath(*address);
  const auto type = TextOf(ask({{.device = *address, .card = *card, .path = path}}), path);
  if (type.ok() && *type == unit.vgpu_type) return absl::OkStatus();
  if (const std::string file = SilentFile(path, type.status()); !file.empty()) {
    return Changed(
        unit, Code::kUnbindStuck,
        absl::StrFormat("its driver does not answer: reading /%s does not return", file));
  }
  return Changed(unit, Code::kDriverChanged,
                 absl::StrFormat("its vGPU type is %s now, was %s", type.ok() ? *type : "unknown",
                                 unit.vgpu_type));
}

absl::Status VerifyNodes(const Tree& tree, const OfferedUnit& unit) {
  for (const std::string& node : unit.nodes) {
    const std::string_view path = node;
    if (tree.Exists(path.substr(1))) continue;  // the tree's paths are relative to its root
    return Changed(unit, Code::kNodeMissing,
                   absl::StrFormat("the device node %s is missing", node));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifyUnit(const Tree& tree, const OfferedUnit& unit, const AskDrivers& ask) {
  if (!unit.mdev_type.empty()) {
    RETURN_IF_ERROR(VerifyMdev(tree, unit));
    return VerifyNodes(tree, unit);
  }
  if (!unit.vgpu_type.empty()) {
    RETURN_IF_ERROR(VerifyVgpu(tree, unit, ask ? ask : AskInTurn(tree)));
    return VerifyNodes(tree, unit);
  }
  for (const std::string& address : unit.addresses) {
    if (std::ranges::find(unit.members, address) != unit.members.end()) continue;
    return Changed(unit, Code::kGroupChanged,
                   absl::StrFormat("%s is no member of IOMMU group %d", address, unit.group));
  }
  for (const std::string& member : unit.members) {
    const absl::Status status = VerifyMember(tree, unit, member);
    if (!status.ok()) return status;
  }
  return VerifyNodes(tree, unit);
}

}  // namespace vfio_agent
