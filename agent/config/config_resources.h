// The parts of the configuration that make the policy: resources, aliases and guard.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "agent/config/yaml.h"
#include "iommu/policy/policy.h"

namespace vfio_agent {

// A list of selectors, added to `selectors`.
absl::Status ReadSelectors(const YamlValue& value, std::vector<Selector>& selectors);

// "device-plugin" or "dra".
absl::Status ReadServe(const YamlValue& value, Serve& serve);

// Each replaces what `policy` had.
absl::Status ReadResources(const YamlValue& value, Policy& policy);
absl::Status ReadAliases(const YamlValue& value, Policy& policy);
absl::Status ReadGuard(const YamlValue& value, Policy& policy);

// Reads a list of selectors; what was in `selectors` is replaced.
absl::Status ReadSelectors(const YamlValue& value, std::vector<Selector>& selectors);

}  // namespace vfio_agent
