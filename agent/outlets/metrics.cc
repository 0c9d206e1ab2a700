#include "agent/outlets/metrics.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "absl/strings/str_format.h"
#include "agent/daemon/counts.h"
#include "agent/mode/mode_switch.h"
#include "iommu/plan/unsafe.h"

namespace vfio_agent {
namespace {

using Labels = Counts::Labels;
using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Families = std::vector<MetricFamily>;

// Begins the family vfio_agent_`name`; the samples that follow are its.
void Begin(const std::string& name, MetricType type, const char* help, Families& out) {
  out.push_back({.name = "vfio_agent_" + name, .help = help, .type = type});
}

ClientMetric& AddSample(const Labels& labels, Families& out) {
  ClientMetric& sample = out.back().metric.emplace_back();
  for (const auto& [name, value] : labels) sample.label.push_back({name, value});
  return sample;
}

void AddGauge(const Labels& labels, double value, Families& out) {
  AddSample(labels, out).gauge.value = value;
}

std::string Number(const std::optional<int>& value) {
  return value ? absl::StrFormat("%d", *value) : "";
}

// By what drives it now.
std::string DeviceState(const DeviceStatus& device) {
  if (device.makes_mdevs) return "parent";
  if (device.driver.empty()) return "none";
  return device.driver.find("vfio") != std::string::npos ? "vfio" : "host";
}

void AddCountsBy(const char* label, const std::map<std::string, int>& counts, Families& out) {
  for (const auto& [value, count] : counts) AddGauge({{label, value}}, count, out);
}

void AddDevices(const NodeStatus& node, Families& out) {
  std::map<std::string, int> states = {{"vfio", 0}, {"host", 0}, {"none", 0}};
  for (const DeviceStatus& device : node.devices) ++states[DeviceState(device)];
  Begin("devices", MetricType::Gauge,
        "Endpoints of selected groups by the kind of driver they have.", out);
  AddCountsBy("state", states, out);
  Begin("device_info", MetricType::Gauge, "Endpoints of selected groups, each 1.", out);
  for (const DeviceStatus& device : node.devices) {
    AddGauge({{"address", device.address},
              {"vendor", device.vendor},
              {"device", device.device},
              {"driver", device.driver},
              {"group", Number(device.group)},
              {"numa_node", Number(device.numa_node)},
              {"resource", device.resource}},
             1, out);
  }
}

void AddGroups(const NodeStatus& node, Families& out) {
  Begin("groups", MetricType::Gauge, "IOMMU groups by verdict.", out);
  AddCountsBy("verdict", node.groups, out);
  std::map<std::string, int> codes;
  for (const RefusalStatus& refusal : node.refusals) ++codes[refusal.code];
  Begin("refusals", MetricType::Gauge, "Reasons for which selected groups are refused now.", out);
  AddCountsBy("code", codes, out);
}

void AddUnits(const NodeStatus& node, Families& out) {
  Begin("resource_units", MetricType::Gauge, "Units by resource and state.", out);
  for (const ResourceStatus& resource : node.resources) {
    std::map<std::string, int> states;
    for (const UnitStatus& unit : resource.units) ++states[unit.state];
    for (const auto& [state, count] : states) {
      AddGauge({{"resource", resource.name}, {"state", state}}, count, out);
    }
  }
  Begin("unsafe_units", MetricType::Gauge,
        "Healthy units that nothing isolates from the host (noiommu).", out);
  for (const ResourceStatus& resource : node.resources) {
    AddGauge({{"resource", resource.name}},
             static_cast<double>(std::ranges::count_if(
                 resource.units,
                 [](const UnitStatus& unit) { return unit.healthy && IsUnsafe(unit.reason); })),
             out);
  }
  Begin("unit_held", MetricType::Gauge,
        "Which container has which unit, as the kubelet says; each 1.", out);
  for (const ResourceStatus& resource : node.resources) {
    for (const UnitStatus& unit : resource.units) {
      for (const PodClaim& pod : unit.pods) {
        AddGauge({{"resource", resource.name},
                  {"unit", unit.id},
                  {"group", Number(unit.group)},
                  {"namespace", pod.pod_namespace},
                  {"pod", pod.pod},
                  {"container", pod.container}},
                 1, out);
      }
    }
  }
}

void AddRegistered(const AgentStatus& status, Families& out) {
  Begin("registered", MetricType::Gauge, "1 while the kubelet watches the resource's list.", out);
  for (const PluginStatus& plugin : status.plugins) {
    AddGauge({{"resource", plugin.resource}}, plugin.registered ? 1 : 0, out);
  }
  Begin("kubelet_up", MetricType::Gauge, "1 while the kubelet answers on its socket.", out);
  if (status.waits_for.empty()) AddGauge({}, status.kubelet ? 1 : 0, out);
  Begin("waiting", MetricType::Gauge, "1 while another agent has the node, and this one waits.",
        out);
  AddGauge({}, status.waits_for.empty() ? 0 : 1, out);
}

// Each mode and each state has its series, so that an alert can wait for one that does not come.
void AddMode(const ModeStatus& mode, Families& out) {
  Begin("mode", MetricType::Gauge, "1 for the mode that is in force.", out);
  for (const Mode each : {Mode::kContainer, Mode::kPassthrough, Mode::kVgpu}) {
    const std::string name(Name(each));
    AddGauge({{"mode", name}}, mode.mode == name ? 1 : 0, out);
  }
  Begin("mode_state", MetricType::Gauge, "1 for the state of the mode.", out);
  for (const ModeState each : {ModeState::kSwitching, ModeState::kReady, ModeState::kBlocked}) {
    const std::string name(Name(each));
    AddGauge({{"state", name}}, mode.state == name ? 1 : 0, out);
  }
  Begin("mode_label_unread", MetricType::Gauge,
        "1 while the node's label that decides the mode has not been read since the start.", out);
  AddGauge({}, mode.unread ? 1 : 0, out);
}

struct CountFamily {
  const char* name;
  const char* help;
};

constexpr std::array<CountFamily, 8> kCountFamilies = {{
    {kBinds, "Binds of groups that have ended, by result and code."},
    {kAllocations, "Answers to Allocate."},
    {kClaims, "ResourceClaims that were to be prepared or taken back."},
    {kRegistrations, "Registrations with the kubelet."},
    {kKubeletRestarts, "Starts of the kubelet that were noticed."},
    {kRescans, "Readings of the whole node, by what asked for them."},
    {kDrift, "Healthy units that became unfit without this agent's doing."},
    {kConfigReloads, "Readings of the configuration after the start."},
}};

void AddCounts(const AgentStatus& status, Families& out) {
  for (const CountFamily& family : kCountFamilies) {
    Begin(absl::StrFormat("%s_total", family.name), MetricType::Counter, family.help, out);
    for (const CountStatus& count : status.counts) {
      if (count.name != family.name) continue;
      AddSample(count.labels, out).counter.value = static_cast<double>(count.value);
    }
  }
}

constexpr std::array<CountFamily, 4> kTimeFamilies = {{
    {kBindDuration, "How long binds of groups took, from the first write to the last."},
    {kAllocateDuration, "How long answers to Allocate took."},
    {kPrepareDuration, "How long preparing a ResourceClaim took, with the API server's part."},
    {kUnprepareDuration, "How long taking a ResourceClaim back took."},
}};

void AddTimes(const AgentStatus& status, Families& out) {
  for (const CountFamily& family : kTimeFamilies) {
    Begin(absl::StrFormat("%s_seconds", family.name), MetricType::Histogram, family.help, out);
    for (const TimesStatus& times : status.times) {
      if (times.name != family.name) continue;
      ClientMetric::Histogram& histogram = AddSample({}, out).histogram;
      histogram.sample_sum = times.sum_seconds;
      for (size_t i = 0; i < times.counts.size(); ++i) {
        histogram.sample_count += times.counts[i];
        const double bound =
            i < times.bounds.size() ? times.bounds[i] : std::numeric_limits<double>::infinity();
        histogram.bucket.push_back(
            {.cumulative_count = histogram.sample_count, .upper_bound = bound});
      }
    }
  }
}

// Without samples where the agent goes without the API server.
void AddApi(const ApiStatus& api, Families& out) {
  const bool used = !api.server.empty();
  Begin("api_connected", MetricType::Gauge, "1 while the API server shows the Node.", out);
  if (used) AddGauge({}, api.connected ? 1 : 0, out);
  Begin("api_written", MetricType::Gauge,
        "1 while the Node's condition and labels stand there as they are wanted.", out);
  if (used) AddGauge({}, api.written ? 1 : 0, out);
  Begin("api_requests_total", MetricType::Counter,
        "Requests to the API server, by HTTP status or error.", out);
  for (const auto& [what, value] : api.requests) {
    AddSample({{"verb", what.first}, {"result", what.second}}, out).counter.value =
        static_cast<double>(value);
  }
  Begin("api_events_total", MetricType::Counter, "Kubernetes Events.", out);
  for (const auto& [result, value] :
       {std::pair("posted", api.events_posted), std::pair("dropped", api.events_dropped)}) {
    if (used) AddSample({{"result", result}}, out).counter.value = static_cast<double>(value);
  }
  Begin("api_last_success_timestamp_seconds", MetricType::Gauge,
        "When the API server last did what it was asked for; 0: never.", out);
  if (used) AddGauge({}, absl::ToDoubleSeconds(api.last_success - absl::UnixEpoch()), out);
}

}  // namespace

Families StatusToFamilies(const AgentStatus& status) {
  Families out;
  Begin("build_info", MetricType::Gauge, "1; the version is a label.", out);
  AddGauge({{"version", status.version}}, 1, out);
  AddDevices(*status.node, out);
  AddGroups(*status.node, out);
  AddUnits(*status.node, out);
  AddRegistered(status, out);
  AddMode(status.mode, out);
  double stuck = 0;
  for (const JobStatus& job : status.jobs) stuck += job.state == "stuck" ? 1 : 0;
  Begin("unbinds_stuck", MetricType::Gauge, "Writes to the kernel that have not returned in time.",
        out);
  AddGauge({}, stuck, out);
  AddCounts(status, out);
  AddTimes(status, out);
  Begin("last_reconcile_timestamp_seconds", MetricType::Gauge,
        "When the node was last read; 0: not yet.", out);
  AddGauge({}, absl::ToDoubleSeconds(status.picture.at - absl::UnixEpoch()), out);
  AddApi(status.api, out);
  return out;
}

}  // namespace vfio_agent
