#include "deviceplugin/verify.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_format.h"
#include "iommu/planning.h"
#include "sysfs/paths.h"
#include "sysfs/tree.h"

namespace vfio_agent {
namespace {

absl::Status VerifyDriver(const TreeDir& device, const OfferedUnit& unit,
                          const std::string& member) {
  const auto driver = device.ReadLinkName("driver");
  if (driver.ok()) {
    // pci-stub holds a device for nobody, so the kernel lets a guest have the rest of its group.
    const bool named = std::ranges::find(unit.addresses, member) != unit.addresses.end();
    if (IsVfioDriver(*driver)) return absl::OkStatus();
    if (*driver == "pci-stub" && !named) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrFormat("%s: %s is bound to %s", unit.id, member, *driver));
  }
  if (!absl::IsNotFound(driver.status())) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s: the driver of %s cannot be read: %s", unit.id, member, driver.status().message()));
  }
  if (std::ranges::find(unit.addresses, member) == unit.addresses.end()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrFormat("%s: %s is bound to no driver", unit.id, member));
}

absl::Status NoGroup(const OfferedUnit& unit, const std::string& member) {
  return absl::FailedPreconditionError(
      absl::StrFormat("%s: %s is in no IOMMU group now", unit.id, member));
}

absl::Status VerifyGroup(const TreeDir& device, const OfferedUnit& unit,
                         const std::string& member) {
  const auto group = device.ReadLinkName("iommu_group");
  if (!group.ok()) return NoGroup(unit, member);
  if (*group == absl::StrFormat("%d", unit.group)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat("%s: %s is in IOMMU group %s now, was in %d",
                                                       unit.id, member, *group, unit.group));
}

// Its directory is opened once for both links.
absl::Status VerifyMember(const Tree& tree, const OfferedUnit& unit, const std::string& member) {
  const auto device = TreeDir::Open(tree, absl::StrFormat("%s/%s", kDevicesDir, member));
  if (!device.ok()) return NoGroup(unit, member);
  const absl::Status status = VerifyGroup(*device, unit, member);
  return status.ok() ? VerifyDriver(*device, unit, member) : status;
}

}  // namespace

absl::Status VerifyUnit(const Tree& tree, const OfferedUnit& unit) {
  for (const std::string& address : unit.addresses) {
    if (std::ranges::find(unit.members, address) != unit.members.end()) continue;
    return absl::FailedPreconditionError(
        absl::StrFormat("%s: %s is no member of IOMMU group %d", unit.id, address, unit.group));
  }
  for (const std::string& member : unit.members) {
    const absl::Status status = VerifyMember(tree, unit, member);
    if (!status.ok()) return status;
  }
  for (const std::string& node : unit.nodes) {
    const std::string_view path = node;
    if (tree.Exists(path.substr(1))) continue;  // the tree's paths are relative to its root
    return absl::FailedPreconditionError(
        absl::StrFormat("%s: the device node %s is missing", unit.id, node));
  }
  return absl::OkStatus();
}

}  // namespace vfio_agent
