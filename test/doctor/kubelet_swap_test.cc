// Swap, and what is known of whether the kubelet minds it.
#include <catch2/catch.hpp>

#include "absl/strings/str_join.h"
#include "agent/doctor/kubelet_facts.h"
#include "test/doctor/healthy.h"
#include "test/support/fake_tree.h"

namespace vfio_agent {
namespace {

DoctorFacts SwapOnKubeletDown(const std::vector<SwapArea>& areas = {
                                  {.name = "/swapfile", .type = "file", .size_kb = 8388604}}) {
  DoctorFacts facts = HealthyFacts();
  facts.memory.swaps = Fact<std::vector<SwapArea>>(areas);
  facts.kubelet.process.reset();
  facts.kubelet.socket.state = SocketState::kDead;
  return facts;
}

Finding Swap(const DoctorFacts& facts) { return Answers(facts, "swap").at(0); }

TEST_CASE("a default that is only taken for granted is no failure", "[doctor]") {
  DoctorFacts facts = SwapOnKubeletDown();
  CHECK(Swap(facts).state == State::kFail);  // a file was read, which leaves it at the default
  facts.kubelet.config_file.clear();
  CHECK(Swap(facts).state == State::kWarn);
  CHECK_THAT(Swap(facts).read, Catch::Contains("no configuration of it was seen"));
  facts.kubelet.config.swap_told = true;  // by a flag
  CHECK(Swap(facts).state == State::kFail);
}

TEST_CASE("a kubelet's file that is broken does not refuse swap", "[doctor]") {
  DoctorFacts facts = SwapOnKubeletDown();
  facts.kubelet.config_error = "config.yaml:3:1: bad";
  CHECK(Swap(facts).state == State::kWarn);
  CHECK_THAT(Swap(facts).read, !Catch::Contains("the kubelet's configuration refuses it"));
}

TEST_CASE("k3s does not mind swap unless it is told to", "[doctor]") {
  DoctorFacts facts = SwapOnKubeletDown();
  facts.kubelet.config_file.clear();
  facts.kubelet.allows_swap = true;
  CHECK(Swap(facts).state == State::kOk);
  facts.kubelet.config.swap_told = true;
  CHECK(Swap(facts).state == State::kFail);
  CHECK_THAT(Swap(facts).remedy, Catch::Contains("kubelet-arg") && Catch::Contains("k3s"));
}

TEST_CASE("swap's remedy lasts over the next boot, by what is swapped to", "[doctor]") {
  const std::string disk = Swap(SwapOnKubeletDown()).remedy;
  CHECK(disk ==
        "swapoff -a; so that it stays off, comment its line in /etc/fstab, and `systemctl mask "
        "NAME.swap` for a unit that `systemctl list-units --type swap` shows; then systemctl "
        "restart kubelet; or failSwapOn: false in /var/lib/kubelet/config.yaml");
  const std::string zram =
      Swap(SwapOnKubeletDown({{.name = "/dev/zram0", .type = "partition", .size_kb = 1 << 20}}))
          .remedy;
  CHECK_THAT(zram, Catch::Contains("zram-generator.conf") && !Catch::Contains("fstab"));
}

TEST_CASE("the page that swap's header takes does not make it a GiB less", "[doctor]") {
  const auto said = [](uint64_t size_kb) {
    return Swap(SwapOnKubeletDown({{.name = "/s", .type = "file", .size_kb = size_kb}})).read;
  };
  CHECK_THAT(said(8388604), Catch::Contains("(file, 8 GiB)"));
  CHECK_THAT(said(1048572), Catch::Contains("(file, 1 GiB)"));
  CHECK_THAT(said(1572860), Catch::Contains("(file, 1.5 GiB)"));
  CHECK_THAT(said(524284), Catch::Contains("(file, 512 MiB)"));
  CHECK_THAT(said(40), Catch::Contains("(file, 40 KiB)"));
}

KubeletFacts Read(const FakeTree& fake, const HostProcesses& processes = {}) {
  const Tree tree = fake.Open();
  Settings settings;
  settings.device_plugin_dir = "/var/lib/kubelet/device-plugins";
  settings.kubelet_root_dir = "/var/lib/kubelet";
  return ReadKubeletFacts(
      {.proc = &tree, .files = &tree, .plugins = &tree, .files_live = false, .plugins_live = false},
      processes, settings);
}

TEST_CASE("k3s is known by its processes, and by its unit while it is down", "[doctor]") {
  const std::string name = GENERATE("k3s", "k3s-server", "k3s-agent", "rke2");
  FakeTree fake;
  CHECK_FALSE(Read(fake).allows_swap);
  CHECK(Read(fake, {.list = {{.pid = 12, .command = name}}}).allows_swap);
  fake.Write("etc/systemd/system/k3s-agent.service", "[Service]\n");
  CHECK(Read(fake).allows_swap);
  CHECK_FALSE(Read(fake).config.swap_told);
  fake.Write("etc/systemd/system/kubelet.service", "[Service]\n");
  CHECK_FALSE(Read(fake).allows_swap);
}

TEST_CASE("what the unit of k3s hands to the kubelet counts", "[doctor]") {
  const std::string argument =
      GENERATE("'--kubelet-arg=fail-swap-on=true'", "'--kubelet-arg' \\\n    'fail-swap-on=true'");
  FakeTree fake;
  fake.Write("etc/systemd/system/k3s.service",
             "[Service]\nExecStart=/usr/local/bin/k3s \\\n    server \\\n    --config "
             "/etc/k3s.yaml \\\n    " +
                 argument + " \\\n    --debug\n");
  CHECK(Read(fake).config.swap_told);
  CHECK(Read(fake).config.fail_swap_on);
  CHECK(Read(fake).config_file.empty());  // its --config is of k3s, not of the kubelet
}

TEST_CASE("k3s and RKE2 hand on what their configuration files say", "[doctor]") {
  const std::string file = GENERATE("etc/rancher/k3s/config.yaml", "etc/rancher/rke2/config.yaml",
                                    "etc/rancher/k3s/config.yaml.d/10-swap.yaml");
  const std::string text =
      GENERATE("kubelet-arg:\n- v=2\n- fail-swap-on=false\n", "kubelet-arg: fail-swap-on=false\n",
               "kubelet-arg+: [\"--fail-swap-on=false\"]\n");
  FakeTree fake;
  fake.Write(file, text);
  CHECK(Read(fake).config.swap_told);
  CHECK_FALSE(Read(fake).config.fail_swap_on);
  fake.Write(file, "kubelet-arg: [\n");
  CHECK_FALSE(Read(fake).config.swap_told);
}

TEST_CASE("of k3s that runs its own words win over its files, and are not the kubelet's",
          "[doctor]") {
  const std::string words[] = {"k3s", "server", "--config=/etc/k3s.yaml", "--kubelet-arg",
                               "fail-swap-on=true"};
  FakeTree fake;
  fake.Write("proc/12/cmdline", absl::StrJoin(words, std::string(1, '\0')));
  fake.Write("etc/rancher/k3s/config.yaml", "kubelet-arg: [fail-swap-on=false, config=/etc/k]\n");
  fake.Write("etc/k", "cpuManagerPolicy: static\n");
  const KubeletFacts facts = Read(fake, {.list = {{.pid = 12, .command = "k3s-server"}}});
  CHECK(facts.config.fail_swap_on);
  CHECK(facts.config_file == "/etc/k");
  CHECK(facts.config.cpu_policy == "static");
}

TEST_CASE("a file that --config names and that is not there is told by its whole path",
          "[doctor]") {
  FakeTree fake;
  fake.Write("etc/default/kubelet", "ARGS=--config=/var/lib/kubelet/config.yaml\n");
  CHECK(Read(fake).config_missing);
  CHECK(Read(fake).config_error == "/var/lib/kubelet/config.yaml: No such file or directory");
  fake.Write("var/lib/kubelet/config.yaml", "[");
  CHECK_FALSE(Read(fake).config_missing);
}

}  // namespace
}  // namespace vfio_agent
