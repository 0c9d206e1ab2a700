// Metrics in Prometheus' text format, version 0.0.4.
#pragma once

#include <prometheus/metric_family.h>

#include <string>
#include <vector>

namespace vfio_agent {

// What prometheus-cpp's TextSerializer writes, of counters, gauges and histograms; a test holds the
// two together. Debian has that only in a shared library of C++, which with the shared libstdc++
// that it needs would cost 1.6 MB of memory and a millisecond at the start. Its values are headers.
std::string ToPrometheusText(const std::vector<prometheus::MetricFamily>& families);

}  // namespace vfio_agent
