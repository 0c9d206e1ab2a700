// The keys of a resource that have to do with presets, NUMA nodes and noiommu mode.
#pragma once

#include "absl/status/status.h"
#include "agent/config/yaml.h"
#include "iommu/policy/policy.h"

namespace vfio_agent {

// Makes `rule` what the key `preset` of the map `entry` stands for, wherever in the map it is;
// without the key nothing. The other keys are read over it.
absl::Status ApplyPreset(const YamlValue& entry, ResourceRule& rule);

absl::Status ReadSuffix(const YamlValue& value, ResourceRule& rule);
absl::Status ReadNuma(const YamlValue& value, ResourceRule& rule);
absl::Status ReadNoiommu(const YamlValue& value, ResourceRule& rule);

}  // namespace vfio_agent
