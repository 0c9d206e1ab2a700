// Retries: when a group whose job failed has its next try, and what has been said of it.
#pragma once

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "agent/work/job.h"
#include "iommu/plan/plan.h"

namespace vfio_agent {

// Exponential back-off by group: 1 s, 2 s, … 5 min, each up to a fifth longer, so that groups that
// failed together do not come back together. A change of the group's facts resets it. One thread.
class Retries {
 public:
  explicit Retries(unsigned seed) : random_(seed) {}

  // Returns how long the group has to wait.
  absl::Duration Failed(int group, absl::Time now);
  // Another process is at work on it: looks again after `wait`. No failure of ours.
  void Wait(int group, absl::Time until);
  void Succeeded(int group) { groups_.erase(group); }

  // After each picture: groups whose members or drivers differ from the picture that followed the
  // failure may be tried at once; groups that are not wanted any more are forgotten, but for groups
  // of `work` and of jobs `at_work`, which may be those of mediated devices.
  void See(const Plan& plan, const std::vector<Job>& work = {}, const std::set<int>& at_work = {});
  // All may be tried at once: the configuration has changed.
  void Reset();

  // From when on the group may be tried; InfinitePast where it does not wait.
  absl::Time NextTry(int group) const;

  // True where its last job failed, and nothing has changed since.
  bool IsFailing(int group) const;

  // True the first time that `line` is said of the group since it last worked or changed.
  bool IsNews(int group, const std::string& line);

 private:
  struct State {
    int failures = 0;  // in a row
    absl::Time next_try = absl::InfinitePast();
    std::vector<Member> seen;  // in the first picture after the failure; empty before that
    std::set<std::string> told;
  };

  std::map<int, State> groups_;
  std::minstd_rand random_;
};

}  // namespace vfio_agent
