#include "iommu/tenancy/custody.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "iommu/plan/condition.h"
#include "iommu/vgpu/vgpu.h"

namespace vfio_agent {
namespace {

std::vector<const PciDevice*> MembersOf(const NodeFacts& facts, int group) {
  std::vector<const PciDevice*> members;
  for (const PciDevice& device : facts.devices) {
    if (device.group == group) members.push_back(&device);
  }
  return members;
}

// The mediated device whose group it is.
std::vector<std::string> UuidsOf(const NodeFacts& facts, int group) {
  std::vector<std::string> uuids;
  for (const MdevInstance& mdev : facts.mdev.instances) {
    if (mdev.group == group) uuids.push_back(mdev.uuid);
  }
  return uuids;
}

// Between Allocate and the pod in the kubelet's list.
bool IsGranted(const Custody& custody, int group) {
  return custody.tenancy && std::ranges::count(custody.tenancy->grants, group, &Grant::group) > 0;
}

std::vector<std::string> PodsOf(const PodClaims& claims, const Parts& given,
                                const std::vector<const PciDevice*>& members,
                                const std::vector<std::string>& uuids) {
  std::vector<std::string> pods;
  for (const PodClaim& claim : claims.list) {
    for (const PciDevice* device : members) {
      const PciAddress& address = device->address;
      if (claim.unit != address.ToString() && !HasPart(given, claim, address)) continue;
      pods.push_back(Spell(claim));
    }
  }
  for (const PodClaim& claim : claims.list) {
    if (std::ranges::count(uuids, claim.unit) > 0) pods.push_back(Spell(claim));
  }
  return pods;
}

}  // namespace

void NoteBound(const NodeFacts& facts, std::set<PciAddress>& seen_bound) {
  std::set<int> groups;
  for (const PciDevice& device : facts.devices) {
    const bool given = IsOnVfio(device) || MayBeVgpu(facts, device.address);
    if (device.group && given) groups.insert(*device.group);
  }
  for (const PciDevice& device : facts.devices) {
    if (device.group && !device.IsBridge() && groups.contains(*device.group)) {
      seen_bound.insert(device.address);
    }
  }
}

uint64_t FatalErrors(const NodeFacts& facts, const PciDevice& endpoint) {
  const PciDevice* const root =
      endpoint.path.empty() ? nullptr : FindDevice(facts, endpoint.path.front());
  uint64_t count = 0;
  for (const PciDevice* counter : {&endpoint, root}) {
    if (counter != nullptr && counter->aer_fatal.known()) count += counter->aer_fatal.value();
  }
  return count;
}

void NoteFatal(const NodeFacts& facts, std::map<PciAddress, uint64_t>& before) {
  std::map<PciAddress, uint64_t> now;
  for (const PciDevice& device : facts.devices) {
    if (device.IsBridge() || !IsOnVfio(device)) continue;
    const uint64_t count = FatalErrors(facts, device);
    const auto known = before.find(device.address);
    now[device.address] = known == before.end() ? count : std::min(known->second, count);
  }
  before = std::move(now);
}

bool CanBeHeld(const Custody& custody, const NodeFacts& facts, int group) {
  if (!UuidsOf(facts, group).empty()) return true;
  return std::ranges::any_of(MembersOf(facts, group), [&custody, &facts](const PciDevice* device) {
    const auto record = custody.records.find(device->address);
    return IsOnVfio(*device) || MayBeVgpu(facts, device->address) ||
           custody.seen_bound.contains(device->address) ||
           (record != custody.records.end() && record->second.IsTaken() && !record->second.vfs);
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
  const Inquiry& inquiry = *custody.inquiry;
  std::vector<std::string> users;
  std::string perhaps;  // a sentence of its own, behind those that are known
  if (CanBeHeld(custody, facts, group)) {
    if (!inquiry.claims.known) perhaps = "a pod perhaps: " + inquiry.claims.why_unknown;
    users = PodsOf(inquiry.claims, custody.given, MembersOf(facts, group), UuidsOf(facts, group));
  }
  if (users.empty() && perhaps.empty() && IsGranted(custody, group))
    users.emplace_back("a pod to be: it was just allocated");
  if (const auto open = inquiry.use.groups.find(group); open != inquiry.use.groups.end()) {
    for (const Holder& holder : open->second) users.push_back(Spell(holder));
  }
  const std::string known = absl::StrJoin(users, ", ");
  return known + (known.empty() || perhaps.empty() ? "" : "; and ") + perhaps;
}

}  // namespace vfio_agent
