// What is read of the kubelet: configuration, flags, unit, files, sockets.
#include <catch2/catch.hpp>

#include "absl/strings/str_join.h"
#include "agent/doctor/kubelet_facts.h"
#include "sysfs/status.h"
#include "test/doctor/listening.h"
#include "test/support/fake_tree.h"

namespace vfio_agent {
namespace {

constexpr char kConfig[] = "var/lib/kubelet/config.yaml";

Settings KubeletSettings() {
  Settings settings;
  settings.device_plugin_dir = "/var/lib/kubelet/device-plugins";
  settings.kubelet_root_dir = "/var/lib/kubelet";
  return settings;
}

KubeletFacts Read(const FakeTree& fake, const HostProcesses& processes = {}, bool live = false) {
  const Tree tree = fake.Open();
  return ReadKubeletFacts(
      {.proc = &tree, .files = &tree, .plugins = &tree, .files_live = live, .plugins_live = false},
      processes, KubeletSettings());
}

HostProcesses Kubelet() { return {.list = {{.pid = 12, .command = "kubelet"}}, .complete = true}; }

TEST_CASE("a kubelet's file that says nothing refuses swap", "[doctor]") {
  KubeletConfig config;
  REQUIRE(
      ReadKubeletConfig("kind: KubeletConfiguration\nother: {deep: [1, 2]}\n", "k", config).ok());
  CHECK(config == KubeletConfig());
  CHECK(config.fail_swap_on);
  REQUIRE(ReadKubeletConfig("failSwapOn: false\nmemorySwap: {swapBehavior: LimitedSwap}\n"
                            "cpuManagerPolicy: static\ntopologyManagerPolicyOptions: "
                            "{max-allowable-numa-nodes: \"16\"}\n",
                            "k", config)
              .ok());
  CHECK_FALSE(config.fail_swap_on);
  CHECK(config.swap_behavior == "LimitedSwap");
  CHECK(config.cpu_policy == "static");
  CHECK(config.many_numa_nodes);
}

TEST_CASE("a kubelet's file that is broken is told by its place, and changes nothing", "[doctor]") {
  const std::string text = GENERATE("a: [1", "- list\n", "failSwapOn: maybe\n",
                                    "cpuManagerPolicy: static\nfailSwapOn: [false]\n", "");
  CAPTURE(text);
  KubeletConfig config;
  const absl::Status status = ReadKubeletConfig(text, "k.yaml", config);
  CHECK_FALSE(status.ok());
  CHECK_THAT(Message(status), Catch::StartsWith("k.yaml"));
  CHECK(config == KubeletConfig());
}

TEST_CASE("what a kubelet's file calls its keys does not reach a terminal", "[doctor]") {
  KubeletConfig config;
  const absl::Status status = ReadKubeletConfig("\"\\e[2J\": 1\n\"\\e[2J\": 2\n", "k.yaml", config);
  CHECK_FALSE(status.ok());
  CHECK(Message(status).find('\x1b') == std::string::npos);
}

TEST_CASE("flags are --name=value, --name value or alone", "[doctor]") {
  const std::vector<std::string> words = {"kubelet", "--config", "/k.yaml", "--fail-swap-on",
                                          "--v=2",   "--x=a=b",  "plain"};
  const KubeletFlags flags = ParseKubeletFlags(words);
  CHECK(flags.at("config") == "/k.yaml");
  CHECK(flags.at("fail-swap-on") == "true");
  CHECK(flags.at("x") == "a=b");
  CHECK(flags.size() == 4);
}

TEST_CASE("a running kubelet's flags say where its configuration is, and win over it", "[doctor]") {
  FakeTree fake;
  fake.Write("etc/k.yaml", "failSwapOn: true\ncpuManagerPolicy: static\n");
  fake.Write("etc/drop/10.conf", "cpuManagerPolicy: none\n").Write("etc/drop/README", "[");
  const std::string words[] = {"kubelet", "--config=/etc/k.yaml", "--config-dir", "/etc/drop",
                               "--fail-swap-on=false"};
  fake.Write("proc/12/cmdline", absl::StrJoin(words, std::string(1, '\0')));
  const KubeletFacts facts = Read(fake, Kubelet());
  CHECK(facts.config_file == "/etc/k.yaml");
  CHECK(facts.config_error.empty());
  CHECK_FALSE(facts.config.fail_swap_on);
  CHECK(facts.config.cpu_policy == "none");
}

TEST_CASE("of a kubelet that is down the flags are read from its unit's files", "[doctor]") {
  FakeTree fake;
  fake.Write(kConfig, "kind: KubeletConfiguration\n");
  CHECK(Read(fake).config.fail_swap_on);
  fake.Write("etc/default/kubelet",
             "# --fail-swap-on=true\nKUBELET_EXTRA_ARGS=\"--v=2 "
             "--fail-swap-on=false\"\n");
  CHECK_FALSE(Read(fake).config.fail_swap_on);
  CHECK(Read(fake).config_file == "/" + std::string(kConfig));
}

TEST_CASE("a unit is installed, enabled or masked", "[doctor]") {
  FakeTree fake;
  CHECK_FALSE(Read(fake).unit_installed);
  fake.Write("usr/lib/systemd/system/kubelet.service", "[Service]\n");
  CHECK(Read(fake).unit_installed);
  CHECK_FALSE(Read(fake).unit_enabled);
  fake.Link("etc/systemd/system/multi-user.target.wants/kubelet.service", "/usr/lib/x");
  CHECK(Read(fake).unit_enabled);
  fake.Link("etc/systemd/system/kubelet.service", "/dev/null");
  CHECK(Read(fake).unit_masked);
}

TEST_CASE("what the kubelet keeps is read for its policy and for being JSON", "[doctor]") {
  FakeTree fake;
  fake.Write("var/lib/kubelet/cpu_manager_state", "{\"policyName\":\"static\",\"checksum\":1}");
  fake.Write("var/lib/kubelet/memory_manager_state", "{\"policyName\":");
  fake.Write("var/lib/kubelet/device-plugins/kubelet_internal_checkpoint", "[]");
  const KubeletFacts facts = Read(fake);
  CHECK(facts.cpu_state.policy == "static");
  CHECK(facts.memory_state.error == "it is no JSON object");
  CHECK(facts.checkpoint.error == "it is no JSON object");
  CHECK(facts.plugin_dir.ok());
  CHECK_FALSE(Read(FakeTree()).checkpoint.there);
}

TEST_CASE("the runtime's socket is the configured one, or the usual one that is there",
          "[doctor]") {
  FakeTree fake;
  CHECK(Read(fake).runtimes.empty());
  std::filesystem::create_directories(fake.root() / "run/crio");
  const Listening crio((fake.root() / "run/crio/crio.sock").string());
  REQUIRE(Read(fake, {}, true).runtimes.size() == 1);
  CHECK(Read(fake, {}, true).runtimes[0] ==
        SocketProbe{"/run/crio/crio.sock", SocketState::kAnswers});
  fake.Write(kConfig, "containerRuntimeEndpoint: unix:///run/other.sock\n");
  REQUIRE(Read(fake, {}, true).runtimes.size() == 1);
  CHECK(Read(fake, {}, true).runtimes[0].state == SocketState::kAbsent);
}

TEST_CASE("distributions have the kubelet within another program", "[doctor]") {
  const HostProcesses k3s{
      .list = {{.pid = 1, .command = "containerd"}, {.pid = 2, .command = "k3s-server"}}};
  REQUIRE(FindKubelet(k3s) != nullptr);
  CHECK(FindKubelet(k3s)->pid == 2);
  CHECK(FindKubelet({.list = {{.pid = 2, .command = "kubelet-helper"}}}) == nullptr);
}

}  // namespace
}  // namespace vfio_agent
