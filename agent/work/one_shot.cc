#include "agent/work/one_shot.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/vfs.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "agent/text/terminal.h"
#include "iommu/plan/job_key.h"
#include "sysfs/clock.h"
#include "sysfs/paths.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

constexpr size_t kMostNamed = 4;
constexpr absl::Duration kTick = absl::Seconds(1);  // of a line that counts the seconds
constexpr absl::Duration kLongest = absl::Minutes(1);

void WaitFor(const Jobs& jobs, absl::Duration longest) {
  const absl::Duration left = std::min(jobs.NextDeadline() - MonotonicNow(), longest);
  const int64_t wait_ms = std::clamp<int64_t>(absl::ToInt64Milliseconds(left) + 1, 0, 60'000);
  pollfd ready = {.fd = jobs.fd(), .events = POLLIN};
  ::poll(&ready, 1, static_cast<int>(wait_ms));
}

// Nothing was written: somebody else is at work on the group, or its lock cannot be had.
JobEvent NotStarted(const Job& job, const absl::Status& status) {
  const bool other = absl::IsUnavailable(status);
  return {.job = job,
          .status = status,
          .code = other ? Code::kForeignManager : Code::kPermissionDenied,
          .remedy = other ? "wait for it to end, then try again" : kStateRemedy};
}

// A tree of plain files, such as an unpacked snapshot: what is written there stays as it is
// written. A simulated kernel comes by FUSE.
bool IsCopy(const Tree& tree) {
  const absl::StatusOr<Fd> devices = tree.OpenAt(kDevicesDir, O_PATH);
  struct statfs system = {};
  if (tree.is_host() || !devices.ok() || ::fstatfs(devices->get(), &system) != 0) return false;
  return system.f_type != SYSFS_MAGIC && system.f_type != FUSE_SUPER_MAGIC;
}

JobEvent OnCopy(const Job& job, const std::string& root) {
  return {.job = job,
          .status = absl::FailedPreconditionError(absl::StrFormat(
              "%s is a copy: no kernel acts on what is written there, so nothing was", root)),
          .code = Code::kProbeRefused,
          .remedy = "run this on the node itself; `plan` shows on a copy what would be written"};
}

// "5", or the address of what has no group.
void AddKey(std::string* out, int key) {
  const std::optional<PciAddress> lone = ParentOfKey(key);
  out->append(lone ? lone->ToString() : absl::StrFormat("%d", key));
}

}  // namespace

std::string ProgressText(const Progress& progress) {
  std::vector<int> groups(progress.at_work.begin(), progress.at_work.end());
  std::string text = absl::StrFormat("%d of %d groups done", progress.done, progress.all);
  if (groups.empty()) return text;
  const bool many = groups.size() > kMostNamed;
  if (many) groups.resize(kMostNamed);
  return absl::StrFormat("%s, %ds: writing to group %s%s", text,
                         absl::ToInt64Seconds(progress.took), absl::StrJoin(groups, ", ", AddKey),
                         many ? " and others" : "");
}

std::vector<JobEvent> RunJobs(std::vector<Job> list, const Session& session) {
  const Settings& settings = session.settings();
  Jobs jobs(session.tree().root(), settings.state_dir, session.OpenJournal(), LimitsOf(settings));
  std::vector<JobEvent> events;
  if (IsCopy(session.tree())) {
    for (const Job& job : list) events.push_back(OnCopy(job, session.tree().root()));
    return events;
  }
  ProgressLine line;
  const absl::Time begun = MonotonicNow();
  size_t next = 0;
  while (next < list.size() || jobs.active() > 0) {
    const auto parallel = static_cast<size_t>(settings.parallel);
    for (; next < list.size() && jobs.active() < parallel; ++next) {
      const absl::Status started = jobs.Start(list[next], MonotonicNow());
      if (!started.ok()) events.push_back(NotStarted(list[next], started));
    }
    if (jobs.active() > 0) {
      line.Show(ProgressText({.done = next - jobs.active(),
                              .all = list.size(),
                              .at_work = jobs.Underway().at_work,
                              .took = MonotonicNow() - begun}));
      WaitFor(jobs, line.visible() ? kTick : kLongest);
    }
    for (JobEvent& event : jobs.Poll(MonotonicNow())) {
      // What comes after a deadline belongs to the one event that told of it.
      if (event.kind == JobEvent::Kind::kStuck || event.cut_off) continue;
      events.push_back(std::move(event));
    }
  }
  return events;
}

}  // namespace vfio_agent
