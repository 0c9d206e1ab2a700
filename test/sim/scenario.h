// Scenario: what a test changes about a machine, in a file of its own.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "test/sim/machine.h"

namespace vfio_agent::sim {

struct Scenario {
  std::string vfio_pci;  // as host.vfio_pci of a machine file; empty: unchanged
  Machine extra;         // its faults, drivers, processes, files, links and absent paths count
};

// InvalidArgument with line and key where the text is not a scenario.
absl::StatusOr<Scenario> ParseScenario(const std::string& yaml);
absl::StatusOr<Scenario> LoadScenario(const std::string& path);

void ApplyScenario(const Scenario& scenario, Machine& machine);

}  // namespace vfio_agent::sim
