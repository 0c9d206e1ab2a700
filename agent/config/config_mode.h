// The part of the configuration that says what a node is for.
#pragma once

#include "absl/status/status.h"
#include "agent/config/yaml.h"
#include "agent/mode/mode.h"

namespace vfio_agent {

// `mode: NAME`, or `mode: {fromNodeLabel: KEY, …}`. Replaces what `rule` had.
absl::Status ReadMode(const YamlValue& value, ModeRule& rule);

}  // namespace vfio_agent
