// The Node's condition for each state of a node.
#include "agent/cluster/ready_condition.h"

#include <catch2/catch.hpp>

namespace vfio_agent {
namespace {

constexpr char kT4[] = "nvidia.com/TESLA_T4";

UnitStatus UnitOf(const char* id, bool healthy, const std::string& reason = "") {
  return {.id = id, .group = 1, .reason = reason, .listed = true, .healthy = healthy};
}

struct Setup {
  NodeStatus node;
  AgentStatus status;

  Setup() {
    node.iommu = "on";
    node.groups = {{"bound", 2}};
    node.resources = {
        {.name = kT4, .units = {UnitOf("0000:11:00.0", true), UnitOf("0000:12:00.0", true)}}};
    status.kubelet = true;
    status.plugins = {{.resource = kT4, .registered = true, .units = 2, .streams = 1}};
    status.picture.at = absl::FromUnixSeconds(1'800'000'000);
  }
  NodeCondition Condition(const ModeStatus& mode = {.mode = "vm-passthrough", .state = "ready"}) {
    status.node = std::make_shared<const NodeStatus>(node);
    status.mode = mode;
    return PassthroughReady(status);
  }
};

#define CHECK_CONDITION(condition, wanted_status, wanted_reason) \
  do {                                                           \
    INFO((condition).message);                                   \
    CHECK((condition).type == "PassthroughReady");               \
    CHECK((condition).status == (wanted_status));                \
    CHECK((condition).reason == (wanted_reason));                \
  } while (false)

TEST_CASE("a node whose units the kubelet can give is ready, and says which", "[ready]") {
  Setup setup;
  const NodeCondition condition = setup.Condition();
  CHECK_CONDITION(condition, "True", "Serving");
  CHECK(condition.message == "2 nvidia.com/TESLA_T4");
}

TEST_CASE("a ready node tells what it refuses and what is unfit all the same", "[ready]") {
  Setup setup;
  setup.node.groups["refused"] = 1;
  setup.node.refusals = {{.code = "foreign-member", .group = 3}};
  setup.node.resources[0].units[1] = UnitOf("0000:12:00.0", false, "driver-changed: x");
  const NodeCondition condition = setup.Condition();
  CHECK_CONDITION(condition, "True", "Serving");
  CHECK(condition.message ==
        "1 nvidia.com/TESLA_T4; 1 units cannot be given now; 1 selected group is refused (1 "
        "foreign-member)");
}

TEST_CASE("a ready node says how many of its units nothing isolates", "[ready]") {
  Setup setup;
  setup.node.resources[0].units[1].reason =
      "noiommu: UNSAFE, nothing isolates its user from the host";
  CHECK(setup.Condition().message ==
        "2 nvidia.com/TESLA_T4; UNSAFE: nothing isolates the users of 1 units from the host "
        "(noiommu)");
}

TEST_CASE("nothing is known before the first reading, nor while the node cannot be read",
          "[ready]") {
  Setup setup;
  setup.status.picture.error = "sys/bus/pci: No such file or directory";
  CHECK_CONDITION(setup.Condition(), "Unknown", "ReadFailed");
  CHECK_THAT(setup.Condition().message, Catch::Contains("No such file"));
  setup.status.picture = {};
  CHECK_CONDITION(setup.Condition(), "Unknown", "Starting");
}

TEST_CASE("healthy units that the kubelet does not watch make no ready node", "[ready]") {
  Setup setup;
  setup.status.plugins[0].registered = false;
  setup.status.plugins[0].last_error = "it says no";
  CHECK_CONDITION(setup.Condition(), "False", "NotRegistered");
  CHECK_THAT(setup.Condition().message, Catch::Contains("nvidia.com/TESLA_T4: it says no"));
  setup.status.kubelet = false;
  CHECK_CONDITION(setup.Condition(), "False", "KubeletDown");
}

TEST_CASE("a node whose IOMMU is off says so before anything else", "[ready]") {
  Setup setup;
  setup.node.iommu = "off";
  setup.node.resources.clear();
  setup.node.groups = {{"refused", 2}};
  CHECK_CONDITION(setup.Condition(), "False", "IommuOff");
}

TEST_CASE("a node of which every group is refused names the codes", "[ready]") {
  Setup setup;
  setup.node.resources.clear();
  setup.node.groups = {{"refused", 5}};
  for (const char* code : {"a", "b", "c", "d", "e", "e"})
    setup.node.refusals.push_back({.code = code});
  CHECK_CONDITION(setup.Condition(), "False", "AllRefused");
  CHECK_THAT(setup.Condition().message,
             Catch::StartsWith("5 selected groups are refused (1 a, 1 b, 1 c, 1 d, and 1 more)"));
}

TEST_CASE("a node without a healthy unit says why they are not", "[ready]") {
  Setup setup;
  for (UnitStatus& unit : setup.node.resources[0].units) {
    unit.healthy = false;
    unit.reason = "device-gone: it was pulled";
  }
  CHECK_CONDITION(setup.Condition(), "False", "NoHealthyUnits");
  CHECK(setup.Condition().message == "none of 2 units can be given; 2: device-gone: it was pulled");
}

TEST_CASE("a node that still binds is not ready yet", "[ready]") {
  Setup setup;
  for (UnitStatus& unit : setup.node.resources[0].units) unit.listed = unit.healthy = false;
  CHECK_CONDITION(setup.Condition(), "False", "Binding");
}

TEST_CASE("a node of which nothing is selected says so", "[ready]") {
  Setup setup;
  setup.node.resources.clear();
  CHECK_CONDITION(setup.Condition(), "False", "NothingSelected");
}

TEST_CASE("in mode container, and while the mode is switched, nothing is ready", "[ready]") {
  Setup setup;
  CHECK_CONDITION(setup.Condition({.mode = "container", .state = "ready"}), "False",
                  "ModeContainer");
  ModeStatus mode{.mode = "vm-passthrough",
                  .target = "container",
                  .state = "blocked",
                  .reason = "pod team/vm has 0000:11:00.0"};
  CHECK_CONDITION(setup.Condition(mode), "False", "ModeBlocked");
  CHECK(setup.Condition(mode).message == "to mode container; pod team/vm has 0000:11:00.0");
  mode.state = "switching";
  CHECK_CONDITION(setup.Condition(mode), "False", "ModeSwitching");
}

TEST_CASE("a node that serves is ready also while a device of its mode is waited for", "[ready]") {
  Setup setup;
  const ModeStatus mode{.mode = "vm-passthrough",
                        .target = "vm-passthrough",
                        .state = GENERATE("blocked", "switching"),
                        .reason = "pid 7 has 0000:13:00.0"};
  CHECK_CONDITION(setup.Condition(mode), "True", "Serving");
  CHECK(setup.Condition(mode).message ==
        "2 nvidia.com/TESLA_T4; mode vm-passthrough is not complete (" + mode.state +
            "): pid 7 has 0000:13:00.0");
  setup.status.plugins[0].registered = false;
  CHECK_CONDITION(setup.Condition(mode), "False", "NotRegistered");
  setup.node.resources.clear();
  CHECK_CONDITION(setup.Condition(mode), "False",
                  mode.state == "blocked" ? "ModeBlocked" : "ModeSwitching");
  CHECK_CONDITION(
      Setup().Condition({.mode = "container", .target = "container", .state = "switching"}),
      "False", "ModeSwitching");
}

TEST_CASE("the last words say whether devices are given back", "[ready]") {
  CHECK_CONDITION(PassthroughEnded(false), "Unknown", "AgentStopped");
  CHECK_THAT(PassthroughEnded(false).message, Catch::Contains("devices stay as they are"));
  CHECK_THAT(PassthroughEnded(true).message,
             Catch::Contains("is given back") && !Catch::Contains("devices stay as they are"));
}

TEST_CASE("what is mostly over in a moment is known as that", "[ready]") {
  Setup setup;
  CHECK_FALSE(MayPass(setup.Condition()));
  CHECK_FALSE(MayPass(setup.Condition({.mode = "container", .state = "ready"})));
  CHECK(MayPass(setup.Condition({.target = "vm-vgpu", .state = "switching"})));
  CHECK_FALSE(MayPass(setup.Condition({.target = "vm-vgpu", .state = "blocked"})));
  setup.status.plugins[0].registered = false;
  CHECK(MayPass(setup.Condition()));
  setup.status.kubelet = false;
  CHECK(MayPass(setup.Condition()));
  setup.status.picture = {};
  CHECK(MayPass(setup.Condition()));
  CHECK_FALSE(MayPass(PassthroughEnded(false)));
}

TEST_CASE("the message is one bounded line, whatever a device is called", "[ready]") {
  Setup setup;
  for (UnitStatus& unit : setup.node.resources[0].units) {
    unit.healthy = false;
    unit.reason = "\x1b[2J" + std::string(4000, 'x');
  }
  const std::string message = setup.Condition().message;
  CHECK(message.size() <= 1024);
  CHECK(message.find('\x1b') == std::string::npos);
}

TEST_CASE("what no slice has for claims is not given, and the condition says why", "[ready]") {
  Setup setup;
  PluginStatus& plugin = setup.status.plugins[0];
  plugin.last_error = "cannot publish ResourceSlices: 403";
  // Older slices stand.
  CHECK_CONDITION(setup.Condition(), "True", "Serving");
  CHECK(setup.Condition().message == "2 nvidia.com/TESLA_T4; cannot publish ResourceSlices: 403");
  plugin.registered = false;
  CHECK_CONDITION(setup.Condition(), "False", "NotRegistered");
  CHECK(setup.Condition().message ==
        "not registered: nvidia.com/TESLA_T4: cannot publish ResourceSlices: 403; 2 units wait for "
        "it");
}

TEST_CASE("a label that is no mode is told with the mode that counts instead", "[ready]") {
  Setup setup;
  const NodeCondition condition =
      setup.Condition({.mode = "container",
                       .target = "container",
                       .state = "ready",
                       .reason = "label example.com/mode=vm_passthrough is no mode"});
  CHECK_CONDITION(condition, "False", "ModeContainer");
  CHECK(condition.message ==
        "mode container: devices are for containers; label example.com/mode=vm_passthrough is no "
        "mode");
}

}  // namespace
}  // namespace vfio_agent
