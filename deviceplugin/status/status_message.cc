#include "deviceplugin/status/status_message.h"

#include <algorithm>

#include "deviceplugin/status/cluster_message.h"

namespace vfio_agent {
namespace {

namespace wire = status::v1;

template <typename Message>
void SetGroup(const std::optional<int>& group, Message& message) {
  if (group) message.set_group(*group);
}
template <typename Message>
void SetNuma(const std::optional<int>& node, Message& message) {
  if (node) message.set_numa_node(*node);
}
template <typename Message>
std::optional<int> GroupOf(const Message& message) {
  return message.has_group() ? std::optional(message.group()) : std::nullopt;
}
template <typename Message>
std::optional<int> NumaOf(const Message& message) {
  return message.has_numa_node() ? std::optional(message.numa_node()) : std::nullopt;
}

void Put(const UnitStatus& unit, wire::Unit& message) {
  message.set_id(unit.id);
  SetGroup(unit.group, message);
  SetNuma(unit.numa_node, message);
  message.set_state(unit.state);
  message.set_reason(unit.reason);
  message.set_listed(unit.listed);
  for (const int group : unit.groups) message.add_groups(group);
  message.set_healthy(unit.healthy);
  for (const std::string& address : unit.addresses) message.add_addresses(address);
  message.set_mdev_type(unit.mdev_type);
  message.set_parent(unit.parent);
  for (const PodClaim& claim : unit.pods) {
    wire::Pod& pod = *message.add_pods();
    pod.set_namespace_(claim.pod_namespace);
    pod.set_name(claim.pod);
    pod.set_container(claim.container);
    pod.set_resource(claim.resource);
  }
}

UnitStatus Take(const wire::Unit& message) {
  UnitStatus unit{.id = message.id(),
                  .group = GroupOf(message),
                  .numa_node = NumaOf(message),
                  .state = message.state(),
                  .reason = message.reason(),
                  .listed = message.listed(),
                  .healthy = message.healthy(),
                  .groups = {message.groups().begin(), message.groups().end()},
                  .addresses = {message.addresses().begin(), message.addresses().end()},
                  .mdev_type = message.mdev_type(),
                  .parent = message.parent()};
  for (const wire::Pod& pod : message.pods()) {
    unit.pods.push_back({.pod_namespace = pod.namespace_(),
                         .pod = pod.name(),
                         .container = pod.container(),
                         .resource = pod.resource(),
                         .unit = message.id()});
  }
  return unit;
}

// The plugins' resources and the picture's, by name: each may lack one that the other has.
void PutResources(const AgentStatus& value, wire::AgentStatus& message) {
  std::map<std::string, wire::Resource*> by_name;
  const auto find = [&](const std::string& name) {
    wire::Resource*& found = by_name[name];
    if (found == nullptr) found = message.add_resources();
    found->set_name(name);
    return found;
  };
  for (const ResourceStatus& resource : value.node->resources) {
    wire::Resource* const into = find(resource.name);
    for (const UnitStatus& unit : resource.units) Put(unit, *into->add_units());
    for (const std::string& note : resource.notes) into->add_notes(note);
  }
  for (const PluginStatus& plugin : value.plugins) {
    wire::Resource* const into = find(plugin.resource);
    into->set_served(true);
    into->set_registered(plugin.registered);
    into->set_streams(plugin.streams);
    into->set_socket(plugin.socket);
    into->set_last_error(plugin.last_error);
  }
}

void TakeResources(const wire::AgentStatus& message, AgentStatus& value, NodeStatus& node) {
  for (const wire::Resource& resource : message.resources()) {
    ResourceStatus& into = node.resources.emplace_back(ResourceStatus{.name = resource.name()});
    into.notes.assign(resource.notes().begin(), resource.notes().end());
    int listed = 0;
    for (const wire::Unit& unit : resource.units()) {
      into.units.push_back(Take(unit));
      listed += unit.listed() ? 1 : 0;
    }
    if (!resource.served()) continue;
    value.plugins.push_back({.resource = resource.name(),
                             .registered = resource.registered(),
                             .units = listed,
                             .streams = resource.streams(),
                             .socket = resource.socket(),
                             .last_error = resource.last_error()});
  }
}

void PutNode(const NodeStatus& node, wire::AgentStatus& message) {
  message.set_iommu(node.iommu);
  message.set_pods_unknown(node.pods_unknown);
  for (const auto& [verdict, count] : node.groups) (*message.mutable_groups())[verdict] = count;
  for (const RefusalStatus& refusal : node.refusals) {
    wire::Refusal& into = *message.add_refusals();
    into.set_code(refusal.code);
    SetGroup(refusal.group, into);
    into.set_address(refusal.address);
    into.set_text(refusal.text);
    into.set_remedy(refusal.remedy);
  }
  for (const DeviceStatus& device : node.devices) {
    wire::Device& into = *message.add_devices();
    into.set_address(device.address);
    into.set_vendor(device.vendor);
    into.set_device(device.device);
    into.set_driver(device.driver);
    SetGroup(device.group, into);
    SetNuma(device.numa_node, into);
    into.set_resource(device.resource);
    into.set_makes_mdevs(device.makes_mdevs);
  }
}

void TakeNode(const wire::AgentStatus& message, NodeStatus& node) {
  node.iommu = message.iommu();
  node.pods_unknown = message.pods_unknown();
  for (const auto& [verdict, count] : message.groups()) node.groups[verdict] = count;
  for (const wire::Refusal& refusal : message.refusals()) {
    node.refusals.push_back({.code = refusal.code(),
                             .group = GroupOf(refusal),
                             .address = refusal.address(),
                             .text = refusal.text(),
                             .remedy = refusal.remedy()});
  }
  for (const wire::Device& device : message.devices()) {
    node.devices.push_back({.address = device.address(),
                            .vendor = device.vendor(),
                            .device = device.device(),
                            .driver = device.driver(),
                            .group = GroupOf(device),
                            .numa_node = NumaOf(device),
                            .resource = device.resource(),
                            .makes_mdevs = device.makes_mdevs()});
  }
}

void PutCounts(const AgentStatus& value, wire::AgentStatus& message) {
  for (const CountStatus& count : value.counts) {
    wire::Count& into = *message.add_counts();
    into.set_name(count.name);
    into.set_value(count.value);
    for (const auto& [name, text] : count.labels) {
      wire::Label& label = *into.add_labels();
      label.set_name(name);
      label.set_value(text);
    }
  }
  for (const TimesStatus& times : value.times) {
    wire::Times& into = *message.add_times();
    into.set_name(times.name);
    into.mutable_bounds()->Add(times.bounds.begin(), times.bounds.end());
    into.mutable_counts()->Add(times.counts.begin(), times.counts.end());
    into.set_sum_seconds(times.sum_seconds);
  }
}

void TakeCounts(const wire::AgentStatus& message, AgentStatus& value) {
  for (const wire::Count& count : message.counts()) {
    CountStatus& into = value.counts.emplace_back();
    into.name = count.name();
    into.value = count.value();
    for (const wire::Label& label : count.labels()) {
      into.labels.emplace_back(label.name(), label.value());
    }
  }
  for (const wire::Times& times : message.times()) {
    value.times.push_back({.name = times.name(),
                           .bounds = {times.bounds().begin(), times.bounds().end()},
                           .counts = {times.counts().begin(), times.counts().end()},
                           .sum_seconds = times.sum_seconds()});
  }
}

}  // namespace

wire::AgentStatus ToMessage(const AgentStatus& value) {
  wire::AgentStatus message;
  message.set_version(value.version);
  message.set_pid(value.pid);
  message.set_started_ms(absl::ToUnixMillis(value.started));
  message.set_kubelet(value.kubelet);
  message.set_ready(value.ready);
  message.set_config_rejected(value.config_rejected);
  PutNode(*value.node, message);
  PutResources(value, message);
  for (const JobStatus& job : value.jobs) {
    wire::Job& into = *message.add_jobs();
    into.set_group(job.group);
    into.set_state(job.state);
    into.set_command(job.command);
    into.set_where(job.where);
  }
  wire::Picture& picture = *message.mutable_picture();
  picture.set_at_ms(absl::ToUnixMillis(value.picture.at));
  picture.set_took_seconds(absl::ToDoubleSeconds(value.picture.took));
  picture.set_trigger(value.picture.trigger);
  picture.set_error(value.picture.error);
  PutCounts(value, message);
  PutMode(value.mode, message);
  PutApi(value.api, message);
  return message;
}

AgentStatus FromMessage(const wire::AgentStatus& message) {
  AgentStatus value;
  value.version = message.version();
  value.pid = message.pid();
  value.started = absl::FromUnixMillis(message.started_ms());
  value.kubelet = message.kubelet();
  value.ready = message.ready();
  value.config_rejected = message.config_rejected();
  NodeStatus node;
  TakeNode(message, node);
  TakeResources(message, value, node);
  value.node = std::make_shared<const NodeStatus>(std::move(node));
  for (const wire::Job& job : message.jobs()) {
    value.jobs.push_back({.group = job.group(),
                          .state = job.state(),
                          .command = job.command(),
                          .where = job.where()});
  }
  value.picture = {.at = absl::FromUnixMillis(message.picture().at_ms()),
                   .took = absl::Seconds(message.picture().took_seconds()),
                   .trigger = message.picture().trigger(),
                   .error = message.picture().error()};
  TakeCounts(message, value);
  value.mode = TakeMode(message.mode());
  value.api = TakeApi(message.api());
  return value;
}

}  // namespace vfio_agent
