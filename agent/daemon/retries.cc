#include "agent/daemon/retries.h"

#include <algorithm>
#include <set>

#include "iommu/plan/job_key.h"

namespace vfio_agent {
namespace {

constexpr absl::Duration kFirstRetry = absl::Seconds(1);
constexpr absl::Duration kLastRetry = absl::Minutes(5);
constexpr double kJitter = 0.2;

// What is planned for them is no fact: it changes with each try.
bool SameFacts(const std::vector<Member>& before, const std::vector<Member>& now) {
  return std::ranges::equal(before, now, [](const Member& one, const Member& other) {
    return one.address == other.address && one.driver == other.driver;
  });
}

}  // namespace

absl::Duration Retries::Failed(int group, absl::Time now) {
  State& state = groups_[group];
  ++state.failures;
  state.seen.clear();
  const double jitter = std::uniform_real_distribution<>(1.0, 1.0 + kJitter)(random_);
  const absl::Duration wait =
      std::min(kFirstRetry * (1 << std::min(state.failures - 1, 16)), kLastRetry) * jitter;
  state.next_try = now + wait;
  return wait;
}

void Retries::Wait(int group, absl::Time until) { groups_[group].next_try = until; }

void Retries::See(const Plan& plan, const std::vector<Job>& work, const std::set<int>& at_work) {
  std::set<int> wanted = at_work;
  for (const Job& job : work) wanted.insert(job.group);
  for (const GroupPlan& group : plan.groups) {
    const std::optional<int> key = JobKey(group);
    if (!key) continue;
    wanted.insert(*key);
    const auto found = groups_.find(*key);
    if (found == groups_.end() || found->second.failures == 0) continue;
    State& state = found->second;
    if (state.seen.empty()) {
      state.seen = group.members;
    } else if (!SameFacts(state.seen, group.members)) {
      state = {};
    }
  }
  std::erase_if(groups_, [&wanted](const auto& entry) { return !wanted.contains(entry.first); });
}

void Retries::Reset() {
  for (auto& entry : groups_) entry.second = {};
}

absl::Time Retries::NextTry(int group) const {
  const auto found = groups_.find(group);
  return found == groups_.end() ? absl::InfinitePast() : found->second.next_try;
}

bool Retries::IsFailing(int group) const {
  const auto found = groups_.find(group);
  return found != groups_.end() && found->second.failures > 0;
}

bool Retries::IsNews(int group, const std::string& line) {
  return groups_[group].told.insert(line).second;
}

}  // namespace vfio_agent
