#include "agent/outlets/metrics_text.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace vfio_agent {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

const char* NameOf(MetricType type) {
  switch (type) {
    case MetricType::Counter:
      return "counter";
    case MetricType::Gauge:
      return "gauge";
    case MetricType::Histogram:
      return "histogram";
    case MetricType::Summary:
    case MetricType::Untyped:
      return "untyped";
  }
  return "untyped";
}

// As few digits as give the double back, and no exponent for what people would write without.
std::string Number(double value) {
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  for (const int digits : {6, 15, 16}) {
    const std::string text = absl::StrFormat("%.*g", digits, value);
    double read = 0;
    if (absl::SimpleAtod(text, &read) && read == value) return text;
  }
  return absl::StrFormat("%.17g", value);
}

std::string Escape(const std::string& value) {
  return absl::StrReplaceAll(value, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}});
}

std::string Spell(const std::vector<ClientMetric::Label>& labels) {
  std::string text;
  for (const ClientMetric::Label& label : labels) {
    text +=
        absl::StrFormat("%s%s=\"%s\"", text.empty() ? "" : ",", label.name, Escape(label.value));
  }
  return text.empty() ? "" : "{" + text + "}";
}

std::string Line(const std::string& name, const std::vector<ClientMetric::Label>& labels,
                 double value) {
  return absl::StrFormat("%s%s %s\n", name, Spell(labels), Number(value));
}

std::string Buckets(const std::string& name, const ClientMetric& metric) {
  std::string text;
  const ClientMetric::Histogram& histogram = metric.histogram;
  for (const ClientMetric::Bucket& bucket : histogram.bucket) {
    std::vector<ClientMetric::Label> labels = metric.label;
    labels.push_back({"le", Number(bucket.upper_bound)});
    text += Line(name + "_bucket", labels, static_cast<double>(bucket.cumulative_count));
  }
  return text + Line(name + "_sum", metric.label, histogram.sample_sum) +
         Line(name + "_count", metric.label, static_cast<double>(histogram.sample_count));
}

std::string Sample(const MetricFamily& family, const ClientMetric& metric) {
  switch (family.type) {
    case MetricType::Counter:
      return Line(family.name, metric.label, metric.counter.value);
    case MetricType::Gauge:
      return Line(family.name, metric.label, metric.gauge.value);
    case MetricType::Histogram:
      return Buckets(family.name, metric);
    case MetricType::Summary:
    case MetricType::Untyped:
      return Line(family.name, metric.label, metric.untyped.value);
  }
  return "";
}

}  // namespace

std::string ToPrometheusText(const std::vector<MetricFamily>& families) {
  std::string text;
  for (const MetricFamily& family : families) {
    text += absl::StrFormat("# HELP %s %s\n# TYPE %s %s\n", family.name, family.help, family.name,
                            NameOf(family.type));
    for (const ClientMetric& metric : family.metric) text += Sample(family, metric);
  }
  return text;
}

}  // namespace vfio_agent
