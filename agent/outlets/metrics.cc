#include "agent/outlets/metrics.h"

#include <array>
#include <map>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "agent/daemon/counts.h"

namespace vfio_agent {
namespace {

using Labels = Counts::Labels;

std::string Escape(const std::string& value) {
  return absl::StrReplaceAll(value, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}});
}

std::string Spell(const Labels& labels) {
  std::string text;
  for (const auto& [name, value] : labels) {
    text += absl::StrFormat("%s%s=\"%s\"", text.empty() ? "" : ",", name, Escape(value));
  }
  return text.empty() ? "" : "{" + text + "}";
}

// Writes family by family: a family's samples stand together, after its help and type.
class Exposition {
 public:
  // Begins the family vfio_agent_`name`.
  void Family(const std::string& name, const char* type, const char* help) {
    name_ = "vfio_agent_" + name;
    text_ += absl::StrFormat("# HELP %s %s\n# TYPE %s %s\n", name_, help, name_, type);
  }
  void Sample(const Labels& labels, double value, const char* suffix = "") {
    // 17 digits give every double back; whole numbers stay whole.
    text_ += absl::StrFormat("%s%s%s %.17g\n", name_, suffix, Spell(labels), value);
  }
  const std::string& text() const { return text_; }

 private:
  std::string name_;
  std::string text_;
};

std::string Number(const std::optional<int>& value) {
  return value ? absl::StrFormat("%d", *value) : "";
}

// By what drives it now.
std::string DeviceState(const DeviceStatus& device) {
  if (device.driver.empty()) return "none";
  return device.driver.find("vfio") != std::string::npos ? "vfio" : "host";
}

void AddCountsBy(const char* label, const std::map<std::string, int>& counts, Exposition& out) {
  for (const auto& [value, count] : counts) out.Sample({{label, value}}, count);
}

void AddDevices(const NodeStatus& node, Exposition& out) {
  std::map<std::string, int> states = {{"vfio", 0}, {"host", 0}, {"none", 0}};
  for (const DeviceStatus& device : node.devices) ++states[DeviceState(device)];
  out.Family("devices", "gauge", "Endpoints of selected groups by the kind of driver they have.");
  AddCountsBy("state", states, out);
  out.Family("device_info", "gauge", "Endpoints of selected groups, each 1.");
  for (const DeviceStatus& device : node.devices) {
    out.Sample({{"address", device.address},
                {"vendor", device.vendor},
                {"device", device.device},
                {"driver", device.driver},
                {"group", Number(device.group)},
                {"numa_node", Number(device.numa_node)},
                {"resource", device.resource}},
               1);
  }
}

void AddGroups(const NodeStatus& node, Exposition& out) {
  out.Family("groups", "gauge", "IOMMU groups by verdict.");
  AddCountsBy("verdict", node.groups, out);
  std::map<std::string, int> codes;
  for (const RefusalStatus& refusal : node.refusals) ++codes[refusal.code];
  out.Family("refusals", "gauge", "Reasons for which selected groups are refused now.");
  AddCountsBy("code", codes, out);
}

void AddUnits(const NodeStatus& node, Exposition& out) {
  out.Family("resource_units", "gauge", "Units by resource and state.");
  for (const ResourceStatus& resource : node.resources) {
    std::map<std::string, int> states;
    for (const UnitStatus& unit : resource.units) ++states[unit.state];
    for (const auto& [state, count] : states) {
      out.Sample({{"resource", resource.name}, {"state", state}}, count);
    }
  }
  out.Family("unit_held", "gauge", "Which container has which unit, as the kubelet says; each 1.");
  for (const ResourceStatus& resource : node.resources) {
    for (const UnitStatus& unit : resource.units) {
      for (const PodClaim& pod : unit.pods) {
        out.Sample({{"resource", resource.name},
                    {"unit", unit.id},
                    {"group", Number(unit.group)},
                    {"namespace", pod.pod_namespace},
                    {"pod", pod.pod},
                    {"container", pod.container}},
                   1);
      }
    }
  }
}

void AddRegistered(const AgentStatus& status, Exposition& out) {
  out.Family("registered", "gauge", "1 while the kubelet watches the resource's list.");
  for (const PluginStatus& plugin : status.plugins) {
    out.Sample({{"resource", plugin.resource}}, plugin.registered ? 1 : 0);
  }
  out.Family("kubelet_up", "gauge", "1 while the kubelet's socket is there.");
  out.Sample({}, status.kubelet ? 1 : 0);
}

struct CountFamily {
  const char* name;
  const char* help;
};

constexpr std::array<CountFamily, 7> kCountFamilies = {{
    {kBinds, "Binds of groups that have ended, by result and code."},
    {kAllocations, "Answers to Allocate."},
    {kRegistrations, "Registrations with the kubelet."},
    {kKubeletRestarts, "Starts of the kubelet that were noticed."},
    {kRescans, "Readings of the whole node, by what asked for them."},
    {kDrift, "Healthy units that became unfit without this agent's doing."},
    {kConfigReloads, "Readings of the configuration after the start."},
}};

void AddCounts(const AgentStatus& status, Exposition& out) {
  for (const CountFamily& family : kCountFamilies) {
    out.Family(absl::StrFormat("%s_total", family.name), "counter", family.help);
    for (const CountStatus& count : status.counts) {
      if (count.name == family.name) out.Sample(count.labels, static_cast<double>(count.value));
    }
  }
}

void AddTimes(const AgentStatus& status, Exposition& out) {
  for (const TimesStatus& times : status.times) {
    out.Family(times.name + "_seconds", "histogram", "How long it took.");
    uint64_t so_far = 0;
    for (size_t i = 0; i < times.counts.size(); ++i) {
      so_far += times.counts[i];
      const std::string bound =
          i < times.bounds.size() ? absl::StrFormat("%g", times.bounds[i]) : "+Inf";
      out.Sample({{"le", bound}}, static_cast<double>(so_far), "_bucket");
    }
    out.Sample({}, times.sum_seconds, "_sum");
    out.Sample({}, static_cast<double>(so_far), "_count");
  }
}

}  // namespace

std::string StatusToMetrics(const AgentStatus& status) {
  Exposition out;
  out.Family("build_info", "gauge", "1; the version is a label.");
  out.Sample({{"version", status.version}}, 1);
  AddDevices(*status.node, out);
  AddGroups(*status.node, out);
  AddUnits(*status.node, out);
  AddRegistered(status, out);
  double stuck = 0;
  for (const JobStatus& job : status.jobs) stuck += job.state == "stuck" ? 1 : 0;
  out.Family("unbinds_stuck", "gauge", "Writes to the kernel that have not returned in time.");
  out.Sample({}, stuck);
  AddCounts(status, out);
  AddTimes(status, out);
  out.Family("last_reconcile_timestamp_seconds", "gauge",
             "When the node was last read; 0: not yet.");
  out.Sample({}, absl::ToDoubleSeconds(status.picture.at - absl::UnixEpoch()));
  return out.text();
}

}  // namespace vfio_agent
