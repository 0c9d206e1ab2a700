// Jobs: the writes of one group each, in child processes with deadlines, several side by side.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "agent/config/settings.h"
#include "agent/work/job.h"
#include "agent/work/journal.h"
#include "iommu/code.h"
#include "iommu/tenancy/custody.h"
#include "sysfs/fd.h"

namespace vfio_agent {

struct JobEvent {
  // kTimedOut: the step's deadline passed and the child was sent a SIGKILL. kStuck: it is still
  // there, inside the kernel. The group must be left alone until kFinished follows, for that same
  // job.
  enum class Kind { kFinished, kTimedOut, kStuck };
  Kind kind = Kind::kFinished;
  Job job;
  size_t done = 0;      // steps carried out
  absl::Status status;  // OK, or why actions[done] failed; DeadlineExceeded when it was stuck
  Code code = Code::kProbeRefused;  // where `status` is an error
  // The child was ended after its deadline, so that nobody knows how far it came: look.
  bool cut_off = false;
  bool undone = false;  // a failed bind: what it had moved is back where it came from
  // Not begun: its card has got full of vGPUs since the plan was made. No failure.
  bool no_room = false;
  std::string remedy;  // instead of the code's own; mostly empty
  // kTimedOut, kStuck: the kernel functions that the child waits in, innermost first, as far as
  // they can be seen.
  std::vector<std::string> stack;
  absl::Duration took;
};

// A write to `unbind` waits for the old driver and may never return, and no signal ends it. A
// thread in that state would keep the whole process from exiting; a child does not. The children
// inherit no descriptor: a stuck one must not keep the plugin's sockets open. One thread.
class Jobs {
 public:
  struct Limits {
    absl::Duration step = absl::Seconds(30);
    absl::Duration node = absl::Seconds(5);
  };

  // `root`: where children open their own Tree. `state_dir`: below it lie the locks by which one
  // process at a time works on a group, also one of an agent that has ended meanwhile, and the
  // journal, which the children write.
  Jobs(std::string root, std::string state_dir, Journal journal, Limits limits);
  ~Jobs();
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;

  // Forks. FailedPrecondition while the group has a job here, Unavailable while another process is
  // at work on it.
  absl::Status Start(Job job, absl::Time now);

  // For steps that begin from now on; one that is under way has the limit that it began with.
  void SetLimits(Limits limits) { limits_ = limits; }

  bool Has(int group) const { return running_.contains(group); }
  // Children that are at work and in time.
  size_t active() const;
  std::vector<const Job*> AtWork() const;  // valid until the next Poll()
  // The groups of those, and the writes of the others.
  vfio_agent::Underway Underway() const;

  // Readable when Poll() has something to tell.
  int fd() const { return epoll_.get(); }
  // When Poll() must be called at the latest.
  absl::Time NextDeadline() const;
  std::vector<JobEvent> Poll(absl::Time now);

 private:
  struct Running;
  void ReadReports(Running& running, absl::Time now);
  JobEvent Finish(Running& running, absl::Time now);
  void CheckDeadline(Running& running, absl::Time now, std::vector<JobEvent>& events);

  const std::string root_;
  const std::string state_dir_;
  const Journal journal_;
  Limits limits_;
  Fd epoll_;
  std::map<int, std::unique_ptr<Running>> running_;  // by group
};

Jobs::Limits LimitsOf(const Settings& settings);

}  // namespace vfio_agent
