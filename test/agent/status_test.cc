// A status as a value: what it is made of, and how it is printed.
#include "agent/outlets/status.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <sstream>

#include "agent/outlets/status_book.h"
#include "deviceplugin/status/status_message.h"

namespace vfio_agent {
namespace {

constexpr char kResource[] = "nvidia.com/GH100_H100_SXM5_80GB";
const absl::Time kStart = absl::FromUnixSeconds(1'800'000'000);

UnitStatus ListedUnit(const std::string& id, bool healthy, const std::string& reason = "") {
  return {.id = id,
          .group = 29,
          .numa_node = 1,
          .state = healthy ? "ready" : "unhealthy",
          .reason = reason,
          .listed = true,
          .healthy = healthy};
}

NodeStatus NodeWith(std::vector<UnitStatus> units) {
  NodeStatus node;
  node.resources = {{.name = kResource, .units = std::move(units)}};
  return node;
}

AgentStatus Full() {
  AgentStatus status;
  status.version = "0.1.0";
  status.pid = 4711;
  status.started = kStart;
  status.kubelet = true;
  status.ready = true;
  status.mode = {.mode = "vm-passthrough",
                 .target = "container",
                 .state = "switching",
                 .reason = "waits for pod team/vm",
                 .label = "nvidia.com/gpu.workload.config",
                 .unread = true,
                 .since = kStart};
  NodeStatus node = NodeWith({ListedUnit("0000:11:00.0", true)});
  node.iommu = "on";
  node.pods_unknown = "the kubelet does not answer";
  node.groups = {{"bound", 1}, {"refused", 1}};
  node.resources[0].units[0].pods = {{"team", "vm", "compute", kResource, "0000:11:00.0"}};
  node.refusals = {{.code = "foreign-member",
                    .group = 3,
                    .address = "0000:02:00.0",
                    .text = std::string(200, 'x'),
                    .remedy = "move it"},
                   {.code = "iommu-off", .text = "off", .remedy = "on"}};
  node.devices = {{.address = "0000:11:00.0", .vendor = "10de", .device = "2330", .group = 29}};
  status.node = std::make_shared<const NodeStatus>(std::move(node));
  status.plugins = {{.resource = kResource,
                     .registered = true,
                     .units = 1,
                     .streams = 1,
                     .socket = "/var/lib/kubelet/device-plugins/vfio-1.sock"}};
  status.jobs = {{.group = 4, .state = "stuck", .command = "echo 1 > unbind", .where = "wait"}};
  status.picture = {.at = kStart + absl::Seconds(90),
                    .took = absl::Milliseconds(3),
                    .trigger = "uevent",
                    .error = ""};
  status.counts = {{.name = "binds", .labels = {{"result", "ok"}, {"code", ""}}, .value = 2}};
  status.api = {.server = "https://10.96.0.1:443",
                .node = "gpu-7",
                .connected = true,
                .last_error = "patch nodes/status: 403",
                .last_error_at = kStart + absl::Seconds(80),
                .last_success = kStart + absl::Seconds(90),
                .requests = {{{"patch", "403"}, 2}},
                .events_posted = 5,
                .events_dropped = 1,
                .events_waiting = 3};
  status.times = {
      {.name = "bind_duration", .bounds = {1, 2}, .counts = {1, 0, 1}, .sum_seconds = 9}};
  return status;
}

TEST_CASE("a status that goes over the socket arrives as it was", "[status]") {
  const AgentStatus before = Full();
  AgentStatus after = FromMessage(ToMessage(before));
  CHECK(*after.node == *before.node);
  after.node = before.node;  // of which only the identity is compared
  CHECK(after == before);
}

TEST_CASE("status says in a table of 100 columns which pod of which namespace has a unit",
          "[status]") {
  const std::string text = StatusToText(Full(), kStart + absl::Seconds(100), false);
  INFO(text);
  CHECK_THAT(text, Catch::Contains("up 1m40s: ready"));
  CHECK_THAT(text, Catch::Contains("last reading: 10s ago (uevent)"));
  CHECK_THAT(text, Catch::Contains("  team/vm"));
  CHECK_THAT(text, Catch::Contains("foreign-member"));
  CHECK_THAT(text, Catch::Contains("stuck"));
  const std::string tables = text.substr(text.find("\n\n"));
  std::istringstream lines(tables);
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 100);
}

TEST_CASE("status says how the agent stands with the API server, and nothing where it has none",
          "[status]") {
  AgentStatus status = Full();
  const absl::Time now = kStart + absl::Seconds(100);
  CHECK_THAT(StatusToText(status, now, false),
             Catch::Contains("\nAPI server: connected, as node gpu-7 at https://10.96.0.1:443; not "
                             "everything is written: patch nodes/status: 403 (20s ago)\n"));
  const Json cluster = StatusToJson(status).at("cluster");
  CHECK(cluster.at("node") == "gpu-7");
  CHECK(cluster.at("requests").at(0) == Json{{"verb", "patch"}, {"result", "403"}, {"value", 2}});
  CHECK(cluster.at("events") == Json{{"posted", 5}, {"dropped", 1}, {"waiting", 3}});
  CHECK(cluster.at("last_success") == "2027-01-15T08:01:30.000Z");
  status.api.written = true;
  CHECK_THAT(StatusToText(status, now, false),
             Catch::Contains("API server: connected, as node gpu-7 at https://10.96.0.1:443\n"));
  status.api = {};
  CHECK(StatusToJson(status).at("cluster").is_null());
  CHECK_THAT(StatusToText(status, now, false), !Catch::Contains("API server"));
}

TEST_CASE("status says which mode is in force, where it goes and what that waits for", "[status]") {
  AgentStatus status = Full();
  CHECK_THAT(
      StatusToText(status, kStart, false),
      Catch::Contains("\nmode: vm-passthrough -> container (switching): waits for pod team/vm\n"));
  CHECK(StatusToJson(status).at("mode") == Json({{"mode", "vm-passthrough"},
                                                 {"target", "container"},
                                                 {"state", "switching"},
                                                 {"reason", "waits for pod team/vm"},
                                                 {"label", "nvidia.com/gpu.workload.config"},
                                                 {"since", "2027-01-15T08:00:00.000Z"}}));
  status.mode = {.mode = "container", .target = "container", .state = "ready"};
  CHECK_THAT(StatusToText(status, kStart, false), Catch::Contains("\nmode: container (ready)\n"));
  status.mode = {};  // of an agent that has not read the node yet
  CHECK_THAT(StatusToText(status, kStart, false), !Catch::Contains("mode:"));
  CHECK(StatusToJson(status).at("mode").is_null());
}

TEST_CASE("the wide status cuts nothing, and has sockets and counts", "[status]") {
  const std::string text = StatusToText(Full(), kStart, true);
  CHECK_THAT(text, Catch::Contains("pod team/vm (container compute)"));
  CHECK_THAT(text, Catch::Contains(std::string(200, 'x')));
  CHECK_THAT(text, Catch::Contains("vfio-1.sock"));
  CHECK_THAT(text, Catch::Contains("result=ok"));
}

TEST_CASE("the status document has a schema, and pods with their namespace", "[status]") {
  const Json json = StatusToJson(Full());
  CHECK(json.at("schema") == "vfio-agent/status/v1");
  const Json& unit = json.at("resources").at(0).at("units").at(0);
  CHECK(unit.at("pods").at(0).at("namespace") == "team");
  CHECK(unit.at("pods").at(0).at("pod") == "vm");
  CHECK(json.at("refusals").at(1).at("group").is_null());
  CHECK(json.at("started") == "2027-01-15T08:00:00.000Z");
}

TEST_CASE("a unit that another takes away is drift, and one that a pod takes is not", "[status]") {
  const NodeStatus before =
      NodeWith({ListedUnit("0000:11:00.0", true), ListedUnit("0000:12:00.0", true)});
  const NodeStatus now =
      NodeWith({ListedUnit("0000:11:00.0", false, "driver-changed: nvidia has it"),
                ListedUnit("0000:12:00.0", false, "group-split: a pod has its sibling")});
  CHECK(FindDrift(before, now) == std::vector<std::string>{"driver-changed"});
  CHECK(FindDrift(now, now).empty());
}

TEST_CASE("a turn in which nothing is new publishes nothing", "[status]") {
  StatusBook book;
  book.Turned({}, absl::FromUnixSeconds(1));
  const auto first = book.Newest();
  book.Turned({}, absl::FromUnixSeconds(2));
  CHECK(book.Newest() == first);
  book.ConfigRead("node.yaml:3:1: unknown key");
  book.Turned({}, absl::FromUnixSeconds(3));
  CHECK(book.Newest() != first);
  CHECK(book.Newest()->config_rejected == "node.yaml:3:1: unknown key");
  CHECK(std::ranges::any_of(book.Newest()->counts, [](const CountStatus& count) {
    return count.name == kConfigReloads && count.value == 1;
  }));
}

TEST_CASE(
    "the loop is hung once it has not turned for twice the resync, and half a minute at least",
    "[status]") {
  CHECK(LoopLimit(absl::Seconds(1)) == absl::Seconds(30));
  CHECK(LoopLimit(absl::Minutes(1)) == absl::Minutes(2));
  StatusBook book;
  const absl::Time turn = absl::FromUnixSeconds(1000);
  book.Turned({.limit = LoopLimit(absl::Minutes(1))}, turn);
  CHECK(book.Ailment(turn + absl::Minutes(2)).empty());
  CHECK_THAT(book.Ailment(turn + absl::Seconds(125)), Catch::Contains("not turned for 2m5s"));
}

TEST_CASE("an agent is not ready before it has read the node, whatever is registered", "[status]") {
  StatusBook book;
  book.Turned({.all_registered = true}, absl::FromUnixSeconds(1));
  CHECK_FALSE(book.Newest()->ready);
  book.PictureTaken("start", absl::Milliseconds(1), "sys: no such directory");
  book.Turned({.all_registered = true}, absl::FromUnixSeconds(1));
  CHECK_FALSE(book.Newest()->ready);
  CHECK(book.Newest()->picture.error == "sys: no such directory");
  book.PictureTaken("again", absl::Milliseconds(1), "");
  book.Turned({.all_registered = true}, absl::FromUnixSeconds(1));
  CHECK(book.Newest()->ready);
  CHECK(book.Newest()->picture.error.empty());
}

TEST_CASE("a unit of several groups tells all of them", "[agent]") {
  AgentStatus status = Full();
  status.node = std::make_shared<NodeStatus>(*status.node);
  CHECK_FALSE(StatusToJson(status)["resources"][0]["units"][0].contains("groups"));
  NodeStatus node = *status.node;
  node.resources[0].units[0].groups = {29, 31};
  status.node = std::make_shared<NodeStatus>(node);
  CHECK(StatusToJson(status)["resources"][0]["units"][0]["groups"] == Json({29, 31}));
  CHECK(FromMessage(ToMessage(status)).node->resources[0].units[0].groups ==
        std::vector<int>{29, 31});
}

TEST_CASE("a unit of several devices tells how many groups, and wide or as document all it is",
          "[agent]") {
  AgentStatus status = Full();
  NodeStatus node = *status.node;
  node.resources[0].units[0].groups = {29, 31, 40};
  node.resources[0].units[0].addresses = {"0000:11:00.0", "0000:12:00.0"};
  node.resources[0].notes = {"a machine can have one unit only: x"};
  status.node = std::make_shared<NodeStatus>(node);
  const AgentStatus arrived = FromMessage(ToMessage(status));
  CHECK(*arrived.node == node);
  const std::string text = StatusToText(arrived, kStart, false);
  CHECK_THAT(text, Catch::Contains(" 29 +2 ") && !Catch::Contains("0000:12:00.0"));
  CHECK_THAT(text,
             Catch::Contains(std::string("\n") + kResource + ": a machine can have one unit"));
  CHECK_THAT(StatusToText(arrived, kStart, true),
             Catch::Contains(" 29 31 40 ") && Catch::Contains(" 0000:11:00.0 0000:12:00.0 "));
  const Json resource = StatusToJson(arrived)["resources"][0];
  CHECK(resource["units"][0]["addresses"] == Json({"0000:11:00.0", "0000:12:00.0"}));
  CHECK(resource["notes"] == Json({"a machine can have one unit only: x"}));
  CHECK_FALSE(StatusToJson(Full())["resources"][0].contains("notes"));
}

TEST_CASE("the status of a node has the functions of its bundles, faults of tables and EGM",
          "[agent]") {
  const PciAddress one{.bus = 0x11}, other{.bus = 0x12};
  Picture picture;
  picture.plan.resources = {
      {.name = kResource,
       .units = {{.id = one.ToString(), .primary = one, .addresses = {one, other}, .group = 29}},
       .partitions_fault = "it names 8"},
      {.name = "x/y", .units = {{.id = other.ToString(), .addresses = {other}}}}};
  picture.plan.egm = {{.node = "/dev/egm4", .gpus = {one}, .resource = kResource}};
  const NodeStatus node = MakeNodeStatus(picture, {});
  CHECK(node.resources.at(0).units.at(0).addresses ==
        std::vector<std::string>{"0000:11:00.0", "0000:12:00.0"});
  REQUIRE(node.resources[0].notes.size() == 2);
  CHECK(node.resources[0].notes[0] == "a machine can have one unit only: it names 8");
  CHECK_THAT(node.resources[0].notes[1], Catch::StartsWith("/dev/egm4 (Extended GPU Memory of"));
  CHECK(node.resources.at(1).units.at(0).addresses.empty());
  CHECK(node.resources.at(1).notes.empty());
}

}  // namespace
}  // namespace vfio_agent
