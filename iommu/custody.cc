#include "iommu/custody.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "iommu/planning.h"

namespace vfio_agent {
namespace {

std::vector<const PciDevice*> MembersOf(const NodeFacts& facts, int group) {
  std::vector<const PciDevice*> members;
  for (const PciDevice& device : facts.devices) {
    if (device.group == group) members.push_back(&device);
  }
  return members;
}

}  // namespace

bool CanBeHeld(const Custody& custody, const NodeFacts& facts, int group) {
  return std::ranges::any_of(MembersOf(facts, group), [&custody](const PciDevice* device) {
    const auto record = custody.records.find(device->address);
    return (device->driver && IsVfioDriver(*device->driver)) ||
           (record != custody.records.end() && record->second.IsTaken());
  });
}

std::string ForeignOverride(const Custody& custody, const PciAddress& device) {
  const auto found = custody.inquiry->overrides.find(device);
  if (found == custody.inquiry->overrides.end() || !found->second.known()) return "";
  const std::string& text = found->second.value();
  if (text.empty() || text == kNoOverride || IsVfioDriver(text)) return "";
  const auto record = custody.records.find(device);
  // On its way back a device has its old driver in the override.
  const bool ours =
      record != custody.records.end() && record->second.this_boot && text == record->second.driver;
  return ours ? "" : text;
}

std::string WhyHeld(const Custody& custody, const NodeFacts& facts, int group) {
  if (!CanBeHeld(custody, facts, group)) return "";
  const std::vector<const PciDevice*> members = MembersOf(facts, group);
  std::vector<std::string> users;
  const Inquiry& inquiry = *custody.inquiry;
  for (const PodClaim& claim : inquiry.claims.list) {
    for (const PciDevice* device : members) {
      if (claim.unit != device->address.ToString()) continue;
      users.push_back(absl::StrFormat("pod %s/%s (container %s)", claim.pod_namespace, claim.pod,
                                      claim.container));
    }
  }
  if (!inquiry.claims.known) users.push_back("a pod perhaps: " + inquiry.claims.why_unknown);
  if (const auto open = inquiry.use.groups.find(group); open != inquiry.use.groups.end()) {
    for (const Holder& holder : open->second) users.push_back(Spell(holder));
  }
  return absl::StrJoin(users, ", ");
}

}  // namespace vfio_agent
