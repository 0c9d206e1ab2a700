#include "deviceplugin/offer/egm_nodes.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "iommu/code.h"
#include "sysfs/device/egm.h"

namespace vfio_agent {
namespace {

bool HasAny(const OfferedUnit& unit, const EgmShare& share) {
  return std::ranges::any_of(share.gpus, [&unit](const PciAddress& gpu) {
    return std::ranges::count(unit.addresses, gpu.ToString()) > 0;
  });
}

bool HaveAll(const std::vector<const OfferedUnit*>& units, const EgmShare& share) {
  return std::ranges::all_of(share.gpus, [&units](const PciAddress& gpu) {
    return std::ranges::any_of(units, [text = gpu.ToString()](const OfferedUnit* unit) {
      return std::ranges::count(unit->addresses, text) > 0;
    });
  });
}

absl::Status Verify(const Tree& tree, const EgmShare& share) {
  const EgmRegion now = ReadEgmRegion(tree, share.node.substr(share.node.rfind('/') + 1));
  if (!now.has_node) {
    return absl::FailedPreconditionError(absl::StrFormat("%s: %s: the device node is missing",
                                                         share.node, CodeName(Code::kNodeMissing)));
  }
  if (now.gpus == share.gpus) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrFormat("%s: %s: it belongs to other GPUs than a moment ago", share.node,
                      CodeName(Code::kGroupChanged)));
}

}  // namespace

absl::Status AddEgmNodes(const Tree& tree, const Offer& offer,
                         std::vector<const OfferedUnit*>& units, std::deque<OfferedUnit>& own) {
  for (const EgmShare& share : offer.egm) {
    if (!HaveAll(units, share)) continue;
    if (absl::Status status = Verify(tree, share); !status.ok()) return status;
    for (const OfferedUnit*& unit : units) {
      if (!HasAny(*unit, share)) continue;
      OfferedUnit& with = own.emplace_back(*unit);
      with.nodes.push_back(share.node);
      unit = &with;
    }
  }
  return absl::OkStatus();
}

}  // namespace vfio_agent
