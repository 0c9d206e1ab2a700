// How an AgentStatus is printed.
#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "agent/commands/commands.h"
#include "agent/listing/tables.h"
#include "agent/outlets/status.h"
#include "agent/text/table.h"
#include "iommu/plan/job_key.h"

namespace vfio_agent {
namespace {

using Rows = TableRows;

Json OrNull(const std::optional<int>& value) { return value ? Json(*value) : Json(nullptr); }
Json OrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }
std::string OrDash(const std::optional<int>& value) {
  return value ? absl::StrFormat("%d", *value) : "-";
}

std::string Time(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
}

// "3m2s": no finer than a second.
std::string Age(absl::Time then, absl::Time now) {
  return absl::FormatDuration(
      absl::Trunc(std::max(now - then, absl::ZeroDuration()), absl::Seconds(1)));
}

const PluginStatus* FindPlugin(const AgentStatus& status, const std::string& resource) {
  const auto found = std::ranges::find(status.plugins, resource, &PluginStatus::resource);
  return found == status.plugins.end() ? nullptr : &*found;
}

Json UnitToJson(const UnitStatus& unit) {
  Json pods = Json::array();
  for (const PodClaim& pod : unit.pods) {
    pods.push_back({{"namespace", pod.pod_namespace},
                    {"pod", pod.pod},
                    {"container", pod.container},
                    {"resource", pod.resource}});
  }
  Json json = {{"id", unit.id},
               {"group", OrNull(unit.group)},
               {"numa_node", OrNull(unit.numa_node)},
               {"state", unit.state},
               {"reason", OrNull(unit.reason)},
               {"listed", unit.listed},
               {"healthy", unit.healthy},
               {"pods", pods}};
  if (!unit.groups.empty()) json["groups"] = unit.groups;
  if (!unit.addresses.empty()) json["addresses"] = unit.addresses;
  if (!unit.mdev_type.empty()) json["mdev_type"] = unit.mdev_type;
  if (!unit.parent.empty()) json["parent"] = unit.parent;
  return json;
}

Json ResourcesToJson(const AgentStatus& status) {
  Json list = Json::array();
  for (const ResourceStatus& resource : status.node->resources) {
    const PluginStatus* const plugin = FindPlugin(status, resource.name);
    Json units = Json::array();
    for (const UnitStatus& unit : resource.units) units.push_back(UnitToJson(unit));
    list.push_back({{"name", resource.name},
                    {"registered", plugin != nullptr && plugin->registered},
                    {"streams", plugin == nullptr ? 0 : plugin->streams},
                    {"socket", plugin == nullptr ? Json(nullptr) : OrNull(plugin->socket)},
                    {"last_error", plugin == nullptr ? Json(nullptr) : OrNull(plugin->last_error)},
                    {"units", units}});
    if (!resource.notes.empty()) list.back()["notes"] = resource.notes;
  }
  return list;
}

Json RefusalsToJson(const NodeStatus& node) {
  Json list = Json::array();
  for (const RefusalStatus& refusal : node.refusals) {
    list.push_back({{"code", refusal.code},
                    {"group", OrNull(refusal.group)},
                    {"address", OrNull(refusal.address)},
                    {"text", refusal.text},
                    {"remedy", refusal.remedy}});
  }
  return list;
}

Json CountsToJson(const AgentStatus& status) {
  Json list = Json::array();
  for (const CountStatus& count : status.counts) {
    Json labels = Json::object();
    for (const auto& [name, value] : count.labels) labels[name] = value;
    list.push_back({{"name", count.name}, {"labels", labels}, {"value", count.value}});
  }
  return list;
}

// "mode: vm-passthrough", and what is amiss with it.
std::string ModeText(const ModeStatus& mode) {
  if (mode.mode.empty()) return "";
  const std::string way = mode.target == mode.mode ? mode.mode : mode.mode + " -> " + mode.target;
  std::string text = absl::StrFormat("mode: %s (%s)", way, mode.state);
  if (!mode.reason.empty()) text += ": " + mode.reason;
  return text + "\n";
}

Json TimeOrNull(absl::Time time) {
  return time == absl::UnixEpoch() ? Json(nullptr) : Json(Time(time));
}

Json ModeToJson(const ModeStatus& mode) {
  if (mode.mode.empty()) return nullptr;
  return {{"mode", mode.mode},           {"target", mode.target},
          {"state", mode.state},         {"reason", OrNull(mode.reason)},
          {"label", OrNull(mode.label)}, {"since", TimeOrNull(mode.since)}};
}

// Null where the agent goes without the API server.
Json ApiToJson(const ApiStatus& api) {
  if (api.server.empty()) return nullptr;
  Json requests = Json::array();
  for (const auto& [what, value] : api.requests) {
    requests.push_back({{"verb", what.first}, {"result", what.second}, {"value", value}});
  }
  return {{"server", api.server},
          {"node", api.node},
          {"connected", api.connected},
          {"written", api.written},
          {"last_error", OrNull(api.last_error)},
          {"last_error_at", TimeOrNull(api.last_error_at)},
          {"last_success", TimeOrNull(api.last_success)},
          {"requests", requests},
          {"events",
           {{"posted", api.events_posted},
            {"dropped", api.events_dropped},
            {"waiting", api.events_waiting}}}};
}

std::string ApiSummary(const ApiStatus& api, absl::Time now) {
  if (api.server.empty()) return "";
  std::string text =
      absl::StrFormat("API server: %s, as node %s at %s",
                      api.connected ? "connected" : "not connected", api.node, api.server);
  if (api.connected && !api.written) text += "; not everything is written";
  if (!api.connected || !api.written) {
    if (!api.last_error.empty()) text += ": " + api.last_error;
    if (api.last_error_at != absl::UnixEpoch())
      text += " (" + Age(api.last_error_at, now) + " ago)";
  }
  return text + "\n";
}

std::string Summary(const AgentStatus& status, absl::Time now) {
  std::vector<std::string> groups;
  for (const auto& [verdict, count] : status.node->groups) {
    groups.push_back(absl::StrFormat("%d %s", count, verdict));
  }
  std::string text = absl::StrFormat(
      "vfio-agent %s, process %d, up %s: %s\nkubelet: %s; IOMMU: %s; groups: %s\n", status.version,
      status.pid, Age(status.started, now), status.ready ? "ready" : "not ready",
      status.kubelet ? "up" : "nobody answers on its socket", status.node->iommu,
      groups.empty() ? "none" : absl::StrJoin(groups, ", "));
  text += ModeText(status.mode);
  if (!status.config_rejected.empty()) {
    text += "configuration not taken, the one before is in force: " + status.config_rejected + "\n";
  }
  const PictureStatus& picture = status.picture;
  if (picture.at == absl::UnixEpoch()) {
    text += "the node has not been read yet\n";
  } else {
    text += absl::StrFormat("last reading: %s ago (%s), took %.1f ms\n", Age(picture.at, now),
                            picture.trigger, absl::ToDoubleMilliseconds(picture.took));
  }
  if (!picture.error.empty()) text += "reading failed since: " + picture.error + "\n";
  if (!status.node->pods_unknown.empty()) {
    text += "who has what is not known: " + status.node->pods_unknown + "\n";
  }
  return text + ApiSummary(status.api, now);
}

std::string Table(Rows rows, const TableStyle& style) {
  return rows.size() < 2 ? "" : "\n" + FormatTable(std::move(rows), style);
}

Rows ResourceRows(const AgentStatus& status, bool wide) {
  Rows rows = {{"RESOURCE", "REGISTERED", "UNITS", "HELD", "STREAMS", "LAST ERROR"}};
  if (wide) rows.front().insert(rows.front().end() - 1, "SOCKET");
  for (const ResourceStatus& resource : status.node->resources) {
    const PluginStatus* const found = FindPlugin(status, resource.name);
    const PluginStatus plugin = found == nullptr ? PluginStatus() : *found;
    const auto held = std::ranges::count_if(
        resource.units, [](const UnitStatus& unit) { return !unit.pods.empty(); });
    rows.push_back({resource.name, plugin.registered ? "yes" : "no",
                    absl::StrFormat("%d", resource.units.size()), absl::StrFormat("%d", held),
                    absl::StrFormat("%d", plugin.streams), plugin.last_error});
    if (wide) rows.back().insert(rows.back().end() - 1, plugin.socket);
  }
  return rows;
}

std::string UnitCell(const UnitStatus& unit, bool wide) {
  return wide && !unit.addresses.empty() ? absl::StrJoin(unit.addresses, " ") : unit.id;
}

std::string NotesText(const NodeStatus& node) {
  std::string text;
  for (const ResourceStatus& resource : node.resources) {
    for (const std::string& note : resource.notes) {
      text += absl::StrFormat("%s: %s\n", resource.name, note);
    }
  }
  return text.empty() ? text : "\n" + text;
}

Rows UnitRows(const NodeStatus& node, bool wide) {
  Rows rows = {{"RESOURCE", "UNIT", "GROUP", "NUMA", "STATE", "WHO OR WHY"}};
  for (const ResourceStatus& resource : node.resources) {
    for (const UnitStatus& unit : resource.units) {
      rows.push_back({resource.name, UnitCell(unit, wide),
                      GroupsCell(unit.group, unit.groups, wide), OrDash(unit.numa_node), unit.state,
                      WhoOrWhy(unit.pods, unit.reason, wide)});
    }
  }
  return rows;
}

Rows CountRows(const AgentStatus& status) {
  Rows rows = {{"COUNT", "VALUE", "OF"}};
  for (const CountStatus& count : status.counts) {
    std::vector<std::string> labels;
    for (const auto& [name, value] : count.labels) labels.push_back(name + "=" + value);
    rows.push_back({count.name, absl::StrFormat("%d", count.value), absl::StrJoin(labels, " ")});
  }
  return rows;
}

}  // namespace

Json StatusToJson(const AgentStatus& status) {
  Json groups = Json::object();
  for (const auto& [verdict, count] : status.node->groups) groups[verdict] = count;
  Json jobs = Json::array();
  for (const JobStatus& job : status.jobs) {
    jobs.push_back({{"group", ParentOfKey(job.group) ? Json(nullptr) : Json(job.group)},
                    {"state", job.state},
                    {"command", OrNull(job.command)},
                    {"where", OrNull(job.where)}});
  }
  const PictureStatus& picture = status.picture;
  const bool read = picture.at != absl::UnixEpoch();
  return {{"schema", "vfio-agent/status/v1"},
          {"version", status.version},
          {"pid", status.pid},
          {"started", Time(status.started)},
          {"ready", status.ready},
          {"config_rejected", OrNull(status.config_rejected)},
          {"mode", ModeToJson(status.mode)},
          {"kubelet", {{"present", status.kubelet}}},
          {"iommu", status.node->iommu},
          {"pods_unknown", OrNull(status.node->pods_unknown)},
          {"groups", groups},
          {"resources", ResourcesToJson(status)},
          {"refusals", RefusalsToJson(*status.node)},
          {"jobs", jobs},
          {"last_reading",
           {{"at", read ? Json(Time(picture.at)) : Json(nullptr)},
            {"took_seconds", absl::ToDoubleSeconds(picture.took)},
            {"trigger", OrNull(picture.trigger)},
            {"error", OrNull(picture.error)}}},
          {"counts", CountsToJson(status)},
          {"cluster", ApiToJson(status.api)}};
}

std::string StatusToText(const AgentStatus& status, absl::Time now, bool wide, TableStyle style) {
  if (wide) style.width = 0;
  Rows refusals = {{"GROUP", "REFUSED", "DEVICE", "WHY"}};
  for (const RefusalStatus& refusal : status.node->refusals) {
    refusals.push_back({OrDash(refusal.group), refusal.code,
                        refusal.address.empty() ? "-" : refusal.address, refusal.text});
  }
  Rows jobs = {{"GROUP", "WRITES", "IN", "COMMAND"}};
  for (const JobStatus& job : status.jobs) {
    const std::optional<PciAddress> lone = ParentOfKey(job.group);
    jobs.push_back({lone ? lone->ToString() : absl::StrFormat("%d", job.group), job.state,
                    job.where.empty() ? "-" : job.where, job.command});
  }
  std::string text = Summary(status, now) + Table(ResourceRows(status, wide), style) +
                     Table(UnitRows(*status.node, wide), style) + NotesText(*status.node) +
                     Table(std::move(refusals), style) + Table(std::move(jobs), style);
  return wide ? text + Table(CountRows(status), style) : text;
}

}  // namespace vfio_agent
