// The parts of a resource's entry that say which devices belong together: bundle and partitions.
#pragma once

#include "absl/status/status.h"
#include "agent/config/yaml.h"
#include "iommu/policy/policy.h"

namespace vfio_agent {

absl::Status ReadBundle(const YamlValue& value, ResourceRule& rule);
absl::Status ReadPartitions(const YamlValue& value, ResourceRule& rule);

// What a bundle needs besides, and what must not be said together with it. `value`: the entry;
// `policy`: the entries before it.
absl::Status CheckBundle(const YamlValue& value, const Policy& policy, const ResourceRule& rule);

}  // namespace vfio_agent
