// Check: one rule of the kubelet's contract, as something that a plugin keeps or breaks.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "test/conformance/stand.h"

namespace vfio_agent::conformance {

struct Check {
  enum class Needs {
    kPlugin,  // a stand where the plugin is served; it leaves that so, and shares it with others
    kOwn,     // a stand where nothing runs yet, for itself
  };
  const char* name;
  const char* rule;      // "R23"
  const char* sentence;  // what a plugin does that keeps it
  Needs needs;
  // OK: kept. NotTried(): nothing can be said. Anything else: broken, with the reason.
  absl::Status (*run)(Stand& stand);
};

// All, in the order in which they are run.
std::vector<Check> AllChecks();

std::span<const Check> RegistrationChecks();
std::span<const Check> ListChecks();
std::span<const Check> AllocateChecks();
std::span<const Check> AnswerChecks();
std::span<const Check> PreferredChecks();
std::span<const Check> HealthChecks();
std::span<const Check> RestartChecks();
std::span<const Check> FaultChecks();
std::span<const Check> ProcessChecks();

inline absl::Status NotTried(const std::string& why) { return absl::CancelledError(why); }
inline bool WasNotTried(const absl::Status& status) { return absl::IsCancelled(status); }

// Broken, with that reason, unless `holds`.
template <typename... Arguments>
absl::Status Require(bool holds, const absl::FormatSpec<Arguments...>& format,
                     const Arguments&... arguments) {
  if (holds) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(format, arguments...));
}

}  // namespace vfio_agent::conformance
