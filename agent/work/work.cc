#include "agent/work/work.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "iommu/plan/job_key.h"
#include "sysfs/paths.h"

namespace vfio_agent {

std::vector<Job> PlanWork(const Picture& picture, const std::string& boot_id) {
  std::vector<Job> work;
  for (const GroupPlan& group : picture.plan.groups) {
    if (group.verdict != Verdict::kBind || !group.refusals.empty()) continue;
    if (picture.custody.underway.at_work.contains(*JobKey(group))) continue;
    work.push_back(MakeBindJob(group, picture.facts, picture.custody, boot_id));
  }
  for (const GroupRelease& release : PlanRecovery(picture.facts, picture.custody, picture.plan)) {
    work.push_back(MakeReleaseJob(release, picture.custody.records));
  }
  for (Job& job : FinishedWork(picture)) work.push_back(std::move(job));
  return work;
}

std::vector<Job> FinishedWork(const Picture& picture) {
  std::map<int, Job> finished;
  for (const Record& record : FinishedRecords(picture.custody.records, picture.plan)) {
    const PciDevice* const device = FindDevice(picture.facts, record.address);
    Job& job = finished[device->group.value_or(-1)];
    job.group = device->group.value_or(-1);
    job.records[record.address] = record;
  }
  std::vector<Job> work;
  for (auto& entry : finished) work.push_back(std::move(entry.second));
  return work;
}

bool TakesVgpuAway(const Job& job) {
  return job.kind == JobKind::kRelease &&
         std::ranges::any_of(job.actions, [](const Action& action) {
           return std::holds_alternative<SetVgpuType>(action);
         });
}

std::string DriversNow(const Tree& tree, const Job& job) {
  std::vector<std::string> parts;
  for (const PciAddress& device : DevicesOf(job.actions)) {
    const absl::StatusOr<std::string> driver = tree.ReadLinkName(DriverLink(device));
    const bool gone = !driver.ok() && !tree.Exists(DeviceDir(device));
    parts.push_back(absl::StrFormat("%s=%s", device.ToString(),
                                    driver.ok() ? *driver
                                    : gone      ? "gone"
                                                : "none"));
  }
  return absl::StrJoin(parts, ",");
}

}  // namespace vfio_agent
