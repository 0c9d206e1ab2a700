// Jobs: the writes of one group each, in child processes with deadlines, several side by side.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "iommu/action.h"
#include "iommu/code.h"
#include "iommu/release.h"
#include "sysfs/fd.h"

namespace vfio_agent {

class Tree;

// What to do where the agent cannot write below its state directory.
inline constexpr char kStateRemedy[] = "make room in stateDir, and let the agent write there";

enum class JobKind { kBind, kRelease };

struct Job {
  int group = 0;
  JobKind kind = JobKind::kBind;
  std::vector<Action> actions;
  // Where the devices came from. Needed for kBind: a plan that fails half-way is put back by the
  // same child, also when the agent is gone by then.
  Origins origins;
};

struct JobEvent {
  // kStuck: the step's deadline passed; the child may still be in the kernel, so the group must
  // be left alone until kFinished follows, for that same job.
  enum class Kind { kFinished, kStuck };
  Kind kind = Kind::kFinished;
  Job job;
  size_t done = 0;      // steps carried out
  absl::Status status;  // OK, or why actions[done] failed; DeadlineExceeded when it was stuck
  Code code = Code::kProbeRefused;  // where `status` is an error
  bool was_stuck = false;
  bool undone = false;  // a failed bind: what it had moved is back where it came from
  std::string remedy;   // instead of the code's own; mostly empty
  std::string where;    // kStuck: the kernel function that the child waits in, if it can be seen
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
  // process at a time works on a group, also one of an agent that has ended meanwhile.
  Jobs(std::string root, std::string state_dir, Limits limits);
  ~Jobs();
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;

  // Forks. FailedPrecondition while the group has a job here, Unavailable while another process is
  // at work on it.
  absl::Status Start(Job job, absl::Time now);

  // For steps that begin from now on.
  void SetLimits(Limits limits) { limits_ = limits; }

  bool Has(int group) const { return running_.contains(group); }
  // Children that are at work and not stuck.
  size_t active() const;
  size_t stuck() const { return running_.size() - active(); }

  // Readable when Poll() has something to tell.
  int fd() const { return epoll_.get(); }
  // When Poll() must be called at the latest.
  absl::Time NextDeadline() const;
  std::vector<JobEvent> Poll(absl::Time now);

 private:
  struct Running;
  void ReadReports(Running& running, absl::Time now);
  JobEvent Finish(Running& running, absl::Time now);
  JobEvent GiveUp(Running& running, absl::Time now);

  const std::string root_;
  const std::string state_dir_;
  Limits limits_;
  Fd epoll_;
  std::map<int, std::unique_ptr<Running>> running_;  // by group
};

}  // namespace vfio_agent
