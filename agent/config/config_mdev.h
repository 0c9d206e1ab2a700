// The sections `mdev` and `vgpu` of the configuration.
#pragma once

#include "agent/config/yaml.h"
#include "iommu/policy/policy.h"

namespace vfio_agent {

absl::Status ReadMdevRules(const YamlValue& value, Policy& policy);
absl::Status ReadVgpuRules(const YamlValue& value, Policy& policy);

}  // namespace vfio_agent
