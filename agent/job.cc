#include "agent/job.h"

#include <algorithm>

namespace vfio_agent {
namespace {

std::vector<PciAddress> EndpointsOf(const GroupPlan& group) {
  std::vector<PciAddress> endpoints;
  for (const Member& member : group.members) {
    if (member.role != Role::kBridge) endpoints.push_back(member.address);
  }
  return endpoints;
}

std::string OverrideOf(const Custody& custody, const PciAddress& device) {
  const auto found = custody.inquiry->overrides.find(device);
  if (found == custody.inquiry->overrides.end()) return "";
  const std::string text = found->second.value_or("");
  return text == kNoOverride ? "" : text;
}

Records RecordsOf(const std::vector<PciAddress>& devices, const Records& records) {
  Records list;
  for (const PciAddress& device : devices) {
    const auto found = records.find(device);
    if (found != records.end() && found->second.this_boot) list.insert(*found);
  }
  return list;
}

}  // namespace

Job MakeBindJob(const GroupPlan& group, const NodeFacts& facts, const Custody& custody,
                const std::string& boot_id) {
  Job job{.group = *group.group, .kind = JobKind::kBind, .actions = group.actions};
  const std::vector<PciAddress> devices = DevicesOf(job.actions);
  job.earlier = RecordsOf(devices, custody.records);
  const std::vector<PciAddress> endpoints = EndpointsOf(group);
  for (const Member& member : group.members) {
    const PciDevice* const device = FindDevice(facts, member.address);
    if (device == nullptr || !std::ranges::count(devices, member.address)) continue;
    const auto earlier = job.earlier.find(member.address);
    job.records[member.address] =
        MakeRecord(*device, endpoints, OverrideOf(custody, member.address), member.to,
                   earlier == job.earlier.end() ? nullptr : &earlier->second, boot_id);
  }
  return job;
}

Job MakeReleaseJob(const GroupRelease& release, const Records& records) {
  return {.group = release.group,
          .kind = JobKind::kRelease,
          .actions = release.actions,
          .records = RecordsOf(release.members, records)};
}

}  // namespace vfio_agent
