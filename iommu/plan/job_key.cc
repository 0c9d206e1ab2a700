#include "iommu/plan/job_key.h"

#include <cstdint>

#include "absl/strings/str_format.h"

namespace vfio_agent {
namespace {

constexpr int kFirst = -2;  // -1 is the group of devices that have none and need none
constexpr uint32_t kMostDomain = 0x7ffe;

}  // namespace

std::optional<int> JobKey(const GroupPlan& group) {
  if (group.group || !group.makes_mdevs || group.members.empty()) return group.group;
  const PciAddress& parent = group.members.front().address;
  if (parent.domain > kMostDomain) return std::nullopt;
  const uint32_t place = parent.domain << 16 | uint32_t{parent.bus} << 8 |
                         uint32_t{parent.device} << 3 | uint32_t{parent.function};
  return kFirst - static_cast<int>(place);
}

std::optional<PciAddress> ParentOfKey(int key) {
  if (key > kFirst) return std::nullopt;
  const auto place = static_cast<uint32_t>(kFirst - key);
  return PciAddress{.domain = place >> 16,
                    .bus = static_cast<uint8_t>(place >> 8 & 0xff),
                    .device = static_cast<uint8_t>(place >> 3 & 0x1f),
                    .function = static_cast<uint8_t>(place & 7)};
}

std::string SpellJobKey(int key) {
  const std::optional<PciAddress> parent = ParentOfKey(key);
  return parent ? absl::StrFormat("%s (no group)", parent->ToString())
                : absl::StrFormat("group %d", key);
}

}  // namespace vfio_agent
