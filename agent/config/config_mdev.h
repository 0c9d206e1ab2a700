// The section `mdev` of the configuration.
#pragma once

#include "agent/config/yaml.h"
#include "iommu/policy.h"

namespace vfio_agent {

absl::Status ReadMdevRules(const YamlValue& value, Policy& policy);

}  // namespace vfio_agent
