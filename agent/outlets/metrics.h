// What a running agent holds, as metrics. Pure.
#pragma once

#include <prometheus/metric_family.h>

#include <string>
#include <vector>

#include "agent/outlets/metrics_text.h"
#include "deviceplugin/status/agent_status.h"

namespace vfio_agent {

// Every family that there is, in a fixed order; one without samples too, so that whoever looks sees
// what can be asked for.
std::vector<prometheus::MetricFamily> StatusToFamilies(const AgentStatus& status);

inline std::string StatusToMetrics(const AgentStatus& status) {
  return ToPrometheusText(StatusToFamilies(status));
}

}  // namespace vfio_agent
