#include "agent/config/config.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>

#include "absl/strings/str_format.h"
#include "agent/config/settings.h"
#include "sysfs/status.h"
#include "test/agent/program.h"

namespace vfio_agent {
namespace {

std::string ErrorOf(const std::string& yaml) {
  const absl::StatusOr<Config> config = ParseConfig(yaml, "c.yaml");
  return config.ok() ? "valid" : Message(config.status());
}

TEST_CASE("the whole of the documented configuration is read", "[agent]") {
  const auto config = ParseConfig(R"(
apiVersion: vfio-agent/v1
mode: vm-passthrough
resources:
  - name: ""
    domain: nvidia.com
    select: [{vendor: "10de", class: ["0300", "0302"]}, {address: "0000:65:00.0"}]
    exclude: [{address: "0000:01:00.0"}]
    companions: same-slot
    allowMembers: [{vendor: "15b3"}]
    sharedGroup: unit
    vfioDriver: auto
    numa: false
    sriov: {vfs: 4}
aliases: {"10de:3182": GB110_B300_SXM6}
guard: {override: ["0000:01:00.0"]}
bind: {unbindTimeout: 10s, parallel: 4, onExit: release}
kubelet: {devicePluginDir: /d, rootDir: /r}
metrics: {listen: "127.0.0.1:9431"}
)",
                                  "c.yaml");
  REQUIRE(config.ok());
  REQUIRE(config->policy.resources.size() == 1);
  const ResourceRule& rule = config->policy.resources.front();
  CHECK(rule.select.size() == 2);
  CHECK(rule.select[0].vendor == 0x10de);
  CHECK(rule.select[0].classes == std::vector<std::string>{"0300", "0302"});
  CHECK(rule.exclude[0].address->ToString() == "0000:01:00.0");
  CHECK(rule.allow_members[0].vendor == 0x15b3);
  CHECK(rule.shared_group == SharedGroup::kUnit);
  CHECK_FALSE(rule.numa);
  CHECK(rule.sriov == Sriov{.vfs = 4});
  CHECK(config->policy.aliases.at("10de:3182") == "GB110_B300_SXM6");
  CHECK(config->policy.guard_override.size() == 1);
  CHECK(config->settings.at("bind.unbindTimeout") == "10s");
  CHECK(config->settings.at("kubelet.devicePluginDir") == "/d");
}

TEST_CASE("an empty configuration is the built-in one", "[agent]") {
  const auto config = ParseConfig("", "c.yaml");
  REQUIRE(config.ok());
  CHECK(config->policy == DefaultPolicy());
}

TEST_CASE("sriov without a number takes the virtual functions that are there", "[agent]") {
  for (const char* sriov : {"{}", "", "~"}) {
    const auto config = ParseConfig(
        std::string("resources:\n- select: [{vendor: '10de'}]\n  sriov: ") + sriov, "c.yaml");
    REQUIRE(config.ok());
    CHECK(config->policy.resources.at(0).sriov == Sriov{});
  }
}

TEST_CASE("mode container offers nothing", "[agent]") {
  const auto config = ParseConfig("mode: container", "c.yaml");
  REQUIRE(config.ok());
  CHECK(config->policy.resources.empty());
}

TEST_CASE("VGPU: mdev has types in the file's order; mode vm-vgpu selects it alone", "[agent]") {
  const std::string mdev =
      "mdev: [{parent: [{vendor: '10de'}], types: {nvidia-222: 4, GRID T4-1Q: 0}, spread: numa, "
      "serve: dra}]\n";
  const MdevRule rule{.parents = {{.vendor = uint16_t{0x10de}}},
                      .types = {{"nvidia-222", 4}, {"GRID T4-1Q", 0}},
                      .spread = MdevSpread::kNuma,
                      .serve = Serve::kDra};
  const auto both = ParseConfig(mdev, "c.yaml");
  REQUIRE(both.ok());
  CHECK(both->policy.mdev == std::vector<MdevRule>{rule});
  CHECK(both->policy.resources == DefaultPolicy().resources);
  const auto vgpu = ParseConfig("mode: vm-vgpu\n" + mdev, "c.yaml");
  REQUIRE(vgpu.ok());
  CHECK(vgpu->policy.mdev == both->policy.mdev);
  CHECK(vgpu->policy.resources.empty());
  CHECK(ParseConfig("mode: container\n" + mdev, "c.yaml")->policy.mdev.empty());
}

TEST_CASE("VGPU: vgpu is as mdev, with names; mode vm-vgpu selects it", "[agent]") {
  const std::string vgpu =
      "vgpu: [{parent: [{vendor: '10de'}], types: {1145: 4}, names: {1145: NVIDIA L40S-1B}}]\n";
  const MdevRule rule{.parents = {{.vendor = uint16_t{0x10de}}},
                      .types = {{"1145", 4}},
                      .names = {{1145, "NVIDIA L40S-1B"}}};
  const auto both = ParseConfig(vgpu, "c.yaml");
  REQUIRE(both.ok());
  CHECK(both->policy.vgpu == std::vector<MdevRule>{rule});
  CHECK(both->policy.resources == DefaultPolicy().resources);
  const auto only = ParseConfig("mode: vm-vgpu\n" + vgpu, "c.yaml");
  REQUIRE(only.ok());
  CHECK(only->policy.vgpu == both->policy.vgpu);
  CHECK(only->policy.resources.empty());
  CHECK(ParseConfig("mode: container\n" + vgpu, "c.yaml")->policy.vgpu.empty());
}

TEST_CASE("a wrong configuration is told with file, line, column and path", "[agent]") {
  struct Row {
    const char* yaml;
    const char* error;
  };
  const Row row = GENERATE(
      Row{"resourcez: []", "c.yaml:1:1: resourcez: unknown key"},
      Row{"resources:\n  - selekt: []", "c.yaml:2:5: resources[0].selekt: unknown key"},
      Row{"mode: container\nmode: container", "c.yaml:2:1: mode: the key occurs twice"},
      Row{"mode: sideways",
          "c.yaml:1:7: mode: 'sideways': want container, vm-passthrough or vm-vgpu"},
      Row{"resources: 5", "c.yaml:1:12: resources: want a list"},
      Row{"resources: [{}]", "a resource needs select:"},
      Row{"resources: [{select: [{}]}]", "a selector needs at least one key"},
      Row{"resources: [{select: [{vendor: 10dx}]}]", "want four hex digits"},
      Row{"resources: [{select: [{address: '65:00.0'}]}]", "not a PCI address"},
      Row{"resources: [{select: [{class: [\"03000\"]}]}]", "hex digits of a PCI class"},
      Row{"resources: [{select: [{group: x}]}]", "want a group number"},
      Row{"resources: [{name: bad name, select: [{vendor: '10de'}]}]", "resource name 'bad name'"},
      Row{"resources: [{domain: UPPER, select: [{vendor: '10de'}]}]", "lower-case DNS name"},
      Row{"resources: [{select: [{vendor: '10de'}], numa: maybe}]", "want true, false or nearest"},
      Row{"resources: [{select: [{vendor: '10de'}], sriov: {vfs: 0}}]", "1 to 65535"},
      Row{"resources: [{select: [{vendor: '10de'}], sriov: {vfs: 70000}}]", "1 to 65535"},
      Row{"resources: [{select: [{vendor: '10de'}], sriov: {vf: 1}}]", "unknown key"},
      Row{"resources: [{select: [{vendor: '10de'}], sriov: yes}]", "want keys and values"},
      Row{"resources: [{select: [{vendor: '10de'}], companions: all}]", "want same-slot"},
      Row{"resources: [{select: [{vendor: '10de'}], sharedGroup: x}]", "want members or unit"},
      Row{"resources: [{select: [{vendor: '10de'}], sharedGroup: unti}]", "did you mean 'unit'?"},
      Row{"resources: [{select: [{vendor: '10de'}], companions: nome}]",
          "want same-slot, none or a list; did you mean 'none'?"},
      Row{"mode: vm-pasthrough", "did you mean 'vm-passthrough'?"},
      Row{"mdev: [{parent: [{vendor: '10de'}], types: {a: 1}, spread: roundrobin}]",
          "did you mean 'round-robin'?"},
      Row{"bind: {onExit: relaese}", "did you mean 'release'?"},
      Row{"kubelet: {iommufd: True}", "want true or false; did you mean 'true'?"},
      Row{"resources: [{domain: a_b, select: [{vendor: '10de'}]}]", "resource name 'a_b/MODEL'"},
      Row{"resources: [{select: [{vendor: '10de'}], vfioDriver: ../x}]", "a driver's name"},
      Row{"resources: [{select: [{vendor: '10de'}]}, {select: [{vendor: '10de'}]}]",
          "selects the same as resources[0]"},
      Row{"aliases: {2330: X}", "want an id such as"}, Row{"aliases: {'10de:2330': -x-}", "name"},
      Row{"mdev: [{types: {a: 1}}]", "an entry of mdev needs parent:"},
      Row{"mdev: [{parent: [{vendor: '10de'}]}]", "an entry of mdev needs types:"},
      Row{"mdev: [{parent: [{vendor: '10de'}], types: [a]}]", "want TYPE: COUNT"},
      Row{"mdev: [{parent: [{vendor: '10de'}], types: {../x: 1}}]", "want a type's name"},
      Row{"mdev: [{parent: [{vendor: '10de'}], types: {a: -1}}]", "want a number from 0 to 1024"},
      Row{"mdev: [{parent: [{vendor: '10de'}], types: {a: 1}, spread: x}]", "want each, round"},
      Row{"mdev: [{parent: [{vendor: '10de'}], types: {a: 1}, domain: UP}]", "lower-case DNS"},
      Row{"mdev: [{parent: [{vendor: '10de'}], types: {a: 1}}, {parent: [{vendor: '10de'}], "
          "types: {b: 1}}]",
          "the same parent as an earlier entry"},
      Row{"vgpu: [{types: {a: 1}}]", "an entry of vgpu needs parent:"},
      Row{"vgpu: [{parent: [{vendor: '10de'}], types: {a: 1}, names: {x: y}}]", "a type's number"},
      Row{"vgpu: [{parent: [{vendor: '10de'}], types: {a: 1}, names: {1: '?'}}]", "resource name"},
      Row{"mdev: [{parent: [{vendor: '10de'}], types: {a: 1}, names: {1: y}}]", "unknown key"},
      Row{"guard: {override: [x]}", "not a PCI address"},
      Row{"bind: {unbindTimeout: soon}",
          "c.yaml:1:23: bind.unbindTimeout: 'soon': want a duration"},
      Row{"bind: {parallel: 0}", "want a number from 1 to 64"},
      Row{"bind: {onExit: explode}", "want keep or release"},
      Row{"kubelet: {devicePluginDir: relative}", "want an absolute path"},
      Row{"apiVersion: v2", "want vfio-agent/v1"}, Row{"a: [", "c.yaml:"},
      Row{"{[a]: b}", "a key must be plain text"}, Row{"- a", "want keys and values"});
  CAPTURE(row.yaml);
  CHECK_THAT(ErrorOf(row.yaml), Catch::Contains(row.error));
}

TEST_CASE("aliases that would make very much of a small text are refused", "[agent]") {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 10; ++j) text += (j == 0 ? "" : ", ") + last;
    text += "]\n";
  }
  CHECK_THAT(ErrorOf(text), Catch::Contains("nested too deep"));
}

TEST_CASE("a missing default file is the built-in configuration, a missing named one an error",
          "[agent]") {
  const ScratchDir dir;
  CHECK_FALSE(ReadConfig(dir.path() + "/none.yaml").ok());
  if (!std::ifstream(kDefaultConfigFile)) {
    CHECK(ReadConfig(kDefaultConfigFile)->policy == DefaultPolicy());
  }
}

TEST_CASE("flag wins over environment, environment over file, file over default", "[agent]") {
  SettingSources sources{.file_name = "c.yaml"};
  CHECK(ResolveSettings(sources).at("bind.parallel").source == "default");
  sources.file["bind.parallel"] = "2";
  CHECK(MakeSettings(sources)->parallel == 2);
  ::setenv("VFIO_AGENT_PARALLEL", "3", 1);  // NOLINT(concurrency-mt-unsafe)
  CHECK(MakeSettings(sources)->parallel == 3);
  sources.flags["parallel"] = "4";
  CHECK(MakeSettings(sources)->parallel == 4);
  ::unsetenv("VFIO_AGENT_PARALLEL");  // NOLINT(concurrency-mt-unsafe)
}

TEST_CASE("R58, T28: the kubelet's root directory does not move its device-plugin directory",
          "[agent]") {
  const auto settings = MakeSettings({.flags = {{"kubelet-root-dir", "/data/kubelet"}}});
  REQUIRE(settings.ok());
  CHECK(settings->kubelet_root_dir == "/data/kubelet");
  CHECK(settings->device_plugin_dir == "/var/lib/kubelet/device-plugins");
  const auto other = MakeSettings({.flags = {{"device-plugin-dir", "/plugins"}}});
  REQUIRE(other.ok());
  CHECK(other->kubelet_root_dir == "/var/lib/kubelet");
}

TEST_CASE(
    "what the API server is told is set in the file; a server or node that is none has its "
    "place named",
    "[agent]") {
  const auto config = ParseConfig(
      "api: {server: \"https://[fd00::1]:6443\", tokenFile: /t, caFile: /c, nodeName: "
      "gpu-7.example, "
      "events: false, condition: false, labels: false}",
      "c.yaml");
  REQUIRE(config.ok());
  const auto settings = MakeSettings({.file = config->settings});
  REQUIRE(settings.ok());
  CHECK(settings->api_server == "https://[fd00::1]:6443");
  CHECK(settings->api_token_file == "/t");
  CHECK(settings->api_ca_file == "/c");
  CHECK(settings->api_node_name == "gpu-7.example");
  CHECK_FALSE((settings->api_events || settings->api_condition || settings->api_labels));
  const auto defaults = MakeSettings({});
  CHECK((defaults->api_events && defaults->api_condition && defaults->api_labels));
  CHECK(ErrorOf("api: {server: none}") == "valid");
  for (const char* server :
       {"http://a", "https://", "a:6443", "\"https://a b\"", "\"https://a\\n\""}) {
    CHECK_THAT(ErrorOf(absl::StrFormat("api: {server: %s}", server)),
               Catch::StartsWith("c.yaml:1:15: api.server: "));
  }
  for (const char* node : {"../pods/x", "Gpu", "-a", "a..b", "a/b", "a%2f"}) {
    CHECK_THAT(ErrorOf(absl::StrFormat("api: {nodeName: %s}", node)),
               Catch::StartsWith("c.yaml:1:17: api.nodeName: "));
  }
}

TEST_CASE("a wrong setting names its source", "[agent]") {
  const auto settings = MakeSettings({.flags = {{"resync", "-1s"}}, .file_name = "c.yaml"});
  REQUIRE_FALSE(settings.ok());
  CHECK_THAT(Message(settings.status()), Catch::Contains("resync (from --resync)"));
}

}  // namespace
}  // namespace vfio_agent
