// Prometheus' text of a status, line by line.
#include "agent/outlets/metrics.h"
#include "agent/config/listen_address.h"

#include <prometheus/text_serializer.h>

#include <catch2/catch.hpp>

#include "agent/daemon/counts.h"
#include "agent/outlets/metrics_http.h"
#include "test/agent/exposition.h"

namespace vfio_agent {
namespace {

constexpr char kResource[] = "nvidia.com/GH100_H100_SXM5_80GB";

AgentStatus OneHeldUnit() {
  AgentStatus status;
  status.version = "0.1.0";
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
                                .listed = true,
                                .healthy = true,
                                .pods = {{"team", "vm", "compute", kResource, "0000:11:00.0"}}}}}};
  status.node = std::make_shared<const NodeStatus>(std::move(node));
  status.plugins = {{.resource = kResource, .registered = true, .units = 1, .streams = 1}};
  status.mode = {.mode = "container", .target = "container", .state = "blocked", .unread = true};
  status.jobs = {{.group = 4, .state = "stuck"}, {.group = 5, .state = "at-work"}};
  return status;
}

double Value(const Exposed& exposed, const std::string& sample) {
  INFO(sample);
  REQUIRE(exposed.samples.contains("vfio_agent_" + sample));
  return exposed.samples.at("vfio_agent_" + sample);
}

TEST_CASE("metrics name the pod, its namespace and the container that has a unit", "[metrics]") {
  const Exposed exposed = ReadExposition(StatusToMetrics(OneHeldUnit()));
  CHECK(exposed.faults == std::vector<std::string>());
  CHECK(Value(exposed,
              "unit_held{resource=\"nvidia.com/GH100_H100_SXM5_80GB\",unit=\"0000:11:00.0\","
              "group=\"29\",namespace=\"team\",pod=\"vm\",container=\"compute\"}") == 1);
  CHECK(Value(exposed,
              "resource_units{resource=\"nvidia.com/GH100_H100_SXM5_80GB\",state=\"held\"}") == 1);
}

TEST_CASE("metrics have how many units nothing isolates, also where there is none", "[metrics]") {
  AgentStatus status = OneHeldUnit();
  const std::string sample = std::string("unsafe_units{resource=\"") + kResource + "\"}";
  CHECK(Value(ReadExposition(StatusToMetrics(status)), sample) == 0);
  NodeStatus node = *status.node;
  node.resources[0].units[0].reason = "noiommu: UNSAFE, nothing isolates its user from the host";
  status.node = std::make_shared<const NodeStatus>(node);
  CHECK(Value(ReadExposition(StatusToMetrics(status)), sample) == 1);
}

TEST_CASE("metrics have each mode and each state, and 1 for the one that is", "[metrics]") {
  const Exposed exposed = ReadExposition(StatusToMetrics(OneHeldUnit()));
  CHECK(Value(exposed, "mode{mode=\"container\"}") == 1);
  CHECK(Value(exposed, "mode{mode=\"vm-passthrough\"}") == 0);
  CHECK(Value(exposed, "mode{mode=\"vm-vgpu\"}") == 0);
  CHECK(Value(exposed, "mode_state{state=\"blocked\"}") == 1);
  CHECK(Value(exposed, "mode_state{state=\"ready\"}") == 0);
  CHECK(Value(exposed, "mode_state{state=\"switching\"}") == 0);
  CHECK(Value(exposed, "mode_label_unread") == 1);
}

TEST_CASE("metrics tell groups, refusals, devices and stuck writes", "[metrics]") {
  const Exposed exposed = ReadExposition(StatusToMetrics(OneHeldUnit()));
  CHECK(Value(exposed, "build_info{version=\"0.1.0\"}") == 1);
  CHECK(Value(exposed, "groups{verdict=\"refused\"}") == 2);
  CHECK(Value(exposed, "refusals{code=\"foreign-member\"}") == 1);
  CHECK(Value(exposed, "devices{state=\"vfio\"}") == 1);
  CHECK(Value(exposed, "devices{state=\"host\"}") == 0);
  CHECK(Value(exposed, "unbinds_stuck") == 1);
  CHECK(Value(exposed, "registered{resource=\"nvidia.com/GH100_H100_SXM5_80GB\"}") == 1);
}

TEST_CASE("an agent that has done nothing yet has well-formed metrics all the same", "[metrics]") {
  AgentStatus status;
  const Counts counts;
  status.counts = counts.counts();
  status.times = counts.times();
  const Exposed exposed = ReadExposition(StatusToMetrics(status));
  CHECK(exposed.faults == std::vector<std::string>());
  CHECK(Value(exposed, "kubelet_restarts_total") == 0);
  CHECK(Value(exposed, "last_reconcile_timestamp_seconds") == 0);
  CHECK(Value(exposed, "bind_duration_seconds_bucket{le=\"+Inf\"}") == 0);
  CHECK(exposed.types.at("vfio_agent_bind_duration_seconds") == "histogram");
  CHECK(exposed.types.at("vfio_agent_binds_total") == "counter");
}

TEST_CASE("a histogram's buckets count everything up to their bound", "[metrics]") {
  Counts counts;
  counts.AddTime(kBindDuration, absl::Milliseconds(50));  // a bound belongs to its bucket
  counts.AddTime(kBindDuration, absl::Milliseconds(300));
  counts.AddTime(kBindDuration, absl::Minutes(5));
  AgentStatus status;
  status.times = counts.times();
  const Exposed exposed = ReadExposition(StatusToMetrics(status));
  CHECK(Value(exposed, "bind_duration_seconds_bucket{le=\"0.05\"}") == 1);
  CHECK(Value(exposed, "bind_duration_seconds_bucket{le=\"0.25\"}") == 1);
  CHECK(Value(exposed, "bind_duration_seconds_bucket{le=\"0.5\"}") == 2);
  CHECK(Value(exposed, "bind_duration_seconds_bucket{le=\"60\"}") == 2);
  CHECK(Value(exposed, "bind_duration_seconds_bucket{le=\"+Inf\"}") == 3);
  CHECK(Value(exposed, "bind_duration_seconds_count") == 3);
  CHECK(Value(exposed, "bind_duration_seconds_sum") == Approx(300.35));
}

TEST_CASE("a label's quotes, backslashes and line ends are escaped", "[metrics]") {
  AgentStatus status;
  status.version = "a\"b\\c\nd";
  const Exposed exposed = ReadExposition(StatusToMetrics(status));
  CHECK(exposed.faults == std::vector<std::string>());
  CHECK(Value(exposed, "build_info{version=\"a\\\"b\\\\c\\nd\"}") == 1);
}

TEST_CASE("the text says what prometheus-cpp's own serializer would", "[metrics]") {
  AgentStatus status = OneHeldUnit();
  status.version = "a\"b\\c\nd";
  Counts counts;
  counts.Add(kBinds, {{"result", "failed"}, {"code", "probe-refused"}});
  counts.AddTime(kBindDuration, absl::Milliseconds(83));
  counts.AddTime(kAllocateDuration, absl::Nanoseconds(123456789));
  status.counts = counts.counts();
  status.times = counts.times();
  status.picture.at = absl::FromUnixMillis(1'790'000'000'123);
  const std::vector<prometheus::MetricFamily> families = StatusToFamilies(status);
  const Exposed ours = ReadExposition(ToPrometheusText(families));
  const Exposed theirs = ReadExposition(prometheus::TextSerializer().Serialize(families));
  CHECK(ours.faults == std::vector<std::string>());
  CHECK(ours.types == theirs.types);
  CHECK(ours.samples.size() > 40);
  CHECK(ours.samples.size() == theirs.samples.size());
  for (const auto& [name, value] : theirs.samples) {
    INFO(name);
    REQUIRE(ours.samples.contains(name));
    CHECK(ours.samples.at(name) == Approx(value).epsilon(1e-15));  // it writes 16 digits
  }
}

TEST_CASE("metrics.listen takes a numeric address with a port, all addresses, or nothing",
          "[metrics]") {
  for (const char* good : {"", "127.0.0.1:9431", ":9431", "[::1]:9431", "0.0.0.0:0"}) {
    CAPTURE(good);
    CHECK(CheckListen(good).ok());
  }
  for (const char* bad : {"9431", "127.0.0.1", "localhost:9431", ":", ":65536", ":-1", ":+1",
                          "127.0.0.1:9431s", "::1:9431", "[127.0.0.1]:1", "1.2.3.4:5,6.7.8.9:1"}) {
    CAPTURE(bad);
    CHECK(absl::IsInvalidArgument(CheckListen(bad)));
  }
}

}  // namespace
}  // namespace vfio_agent
