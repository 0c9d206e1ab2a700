#include "agent/daemon/counts.h"

#include <algorithm>

namespace vfio_agent {
namespace {

// A bind takes from a moment to the patience for one write; an answer to Allocate holds up the
// admission of every pod of the node, and takes microseconds.
const std::vector<double> kBindBounds = {0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60};
const std::vector<double> kAllocateBounds = {0.0001, 0.00025, 0.0005, 0.001, 0.0025,
                                             0.005,  0.01,    0.05,   0.1,   1};
// For a claim the API server is asked, and a record is brought to the disk; the kubelet waits 45 s.
const std::vector<double> kClaimBounds = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 45};

TimesStatus Empty(const char* name, const std::vector<double>& bounds) {
  return {.name = name, .bounds = bounds, .counts = std::vector<uint64_t>(bounds.size() + 1)};
}

}  // namespace

Counts::Counts()
    : times_{Empty(kBindDuration, kBindBounds), Empty(kAllocateDuration, kAllocateBounds),
             Empty(kPrepareDuration, kClaimBounds), Empty(kUnprepareDuration, kClaimBounds)} {
  counts_[{kKubeletRestarts, {}}] = 0;
  for (const char* result : {"ok", "rejected"}) counts_[{kConfigReloads, {{"result", result}}}] = 0;
  for (const char* operation : {"prepare", "unprepare"}) {
    for (const char* result : {"ok", "failed"}) {
      counts_[{kClaims, {{"operation", operation}, {"result", result}}}] = 0;
    }
  }
}

void Counts::AddTime(const std::string& name, absl::Duration took) {
  const double seconds = absl::ToDoubleSeconds(took);
  for (TimesStatus& times : times_) {
    if (times.name != name) continue;
    const auto bound = std::ranges::lower_bound(times.bounds, seconds);
    ++times.counts[static_cast<size_t>(bound - times.bounds.begin())];
    times.sum_seconds += seconds;
  }
}

std::vector<CountStatus> Counts::counts() const {
  std::vector<CountStatus> all;
  all.reserve(counts_.size());
  for (const auto& [key, value] : counts_) {
    all.push_back({.name = key.first, .labels = key.second, .value = value});
  }
  return all;
}

}  // namespace vfio_agent
