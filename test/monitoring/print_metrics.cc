// Prints the metrics of an agent that has something to say in each family.
#include <iostream>

#include "agent/daemon/counts.h"
#include "agent/outlets/metrics.h"

namespace vfio_agent {
namespace {

constexpr char kResource[] = "nvidia.com/GH100_H100_SXM5_80GB";

NodeStatus SomeNode() {
  NodeStatus node;
  node.groups = {{"bound", 1}, {"refused", 2}};
  node.refusals = {{.code = "foreign-member", .group = 3, .text = "x", .remedy = "y"}};
  node.devices = {{.address = "0000:11:00.0",
                   .vendor = "10de",
                   .device = "2330",
                   .driver = "vfio-pci",
                   .group = 29,
                   .numa_node = 0,
                   .resource = kResource}};
  node.resources = {{.name = kResource,
                     .units = {{.id = "0000:11:00.0",
                                .group = 29,
                                .state = "held",
                                .pods = {{"team", "vm", "compute", kResource, "0000:11:00.0"}}}}}};
  return node;
}

Counts SomeCounts() {
  Counts counts;
  counts.Add(kBinds, {{"result", "failed"}, {"code", "probe-refused"}});
  counts.Add(kAllocations, {{"resource", kResource}, {"result", "ok"}});
  counts.Add(kRegistrations, {{"resource", kResource}, {"result", "ok"}});
  counts.Add(kRescans, {{"trigger", "start"}});
  counts.Add(kDrift, {{"kind", "driver-changed"}});
  counts.AddTime(kBindDuration, absl::Milliseconds(80));
  counts.AddTime(kAllocateDuration, absl::Microseconds(120));
  return counts;
}

}  // namespace
}  // namespace vfio_agent

int main() {
  using namespace vfio_agent;
  AgentStatus status;
  status.version = "0.1.0";
  status.node = std::make_shared<const NodeStatus>(SomeNode());
  status.plugins = {{.resource = kResource, .registered = true, .units = 1, .streams = 1}};
  status.api = {.server = "https://api:6443", .requests = {{{"patch", "200"}, 1}}};
  const Counts counts = SomeCounts();
  status.counts = counts.counts();
  status.times = counts.times();
  std::cout << StatusToMetrics(status);
}
