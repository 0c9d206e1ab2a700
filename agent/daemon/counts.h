// Counts: what has happened how often, and how long it took. A value.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "deviceplugin/status/agent_status.h"

namespace vfio_agent {

// The names: as the metrics have them, without "vfio_agent_" and "_total" or "_seconds".
inline constexpr char kBinds[] = "binds";
inline constexpr char kBindDuration[] = "bind_duration";
inline constexpr char kAllocations[] = "allocations";
inline constexpr char kAllocateDuration[] = "allocate_duration";
inline constexpr char kRegistrations[] = "registrations";
inline constexpr char kKubeletRestarts[] = "kubelet_restarts";
inline constexpr char kRescans[] = "rescans";
inline constexpr char kDrift[] = "drift";
inline constexpr char kClaims[] = "claims";
inline constexpr char kPrepareDuration[] = "claim_prepare_duration";
inline constexpr char kUnprepareDuration[] = "claim_unprepare_duration";
inline constexpr char kConfigReloads[] = "config_reloads";

class Counts {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;

  // Those whose labels are known beforehand are there from the start, as zero: Prometheus sees no
  // increase in a series that begins with its first event.
  Counts();

  void Add(const std::string& name, const Labels& labels = {}) { ++counts_[{name, labels}]; }
  // `name`: one that ends with "_duration".
  void AddTime(const std::string& name, absl::Duration took);

  std::vector<CountStatus> counts() const;
  const std::vector<TimesStatus>& times() const { return times_; }

 private:
  std::map<std::pair<std::string, Labels>, uint64_t> counts_;
  std::vector<TimesStatus> times_;
};

}  // namespace vfio_agent
