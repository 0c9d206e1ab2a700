// On every machine of test/machines: what the agent offers, KubeVirt can start, for every count.
//
// The tables state how many units each machine has to give, so that no test passes by offering
// nothing. A machine that offers none says why in its comment.
#include <csignal>
#include <filesystem>
#include <set>

#include "test/agent/node.h"
#include "test/kubevirt/guest.h"

namespace vfio_agent::kubevirt {
namespace {

constexpr absl::Duration kLong = absl::Seconds(60);
constexpr size_t kMostAtOnce = 16;

struct Row {
  const char* machine;
  size_t gpus;  // units with the built-in configuration: NVIDIA's, by model
  size_t any;   // with kEverything: display, accelerators and adapters of any vendor
};

constexpr char kEverything[] = R"(
resources:
  - select: [{vendor: "10de", class: ["0300", "0302"]}]
  - name: site-a.example.com/Accelerator-any.1
    select: [{class: "03"}, {class: "12"}]
  - name: site-a.example.com/nic
    select: [{class: "02"}]
)";

const std::vector<Row> kMachines = {
    {"altra-arm64-a40-nouveau-domain5", 1, 1},
    {"am5-desktop-igpu-only", 0, 1},
    {"aws-p4d-a100-vm", 0, 0},             // no IOMMU
    {"azure-ndv4-a100-vm", 0, 0},          // no IOMMU
    {"dell-r760-iommu-off-312dev", 0, 0},  // no IOMMU
    {"desktop-b450-rx580-raven-apu-chipset-group", 0, 3},
    {"desktop-b550-second-gpu-in-chipset-group", 2, 2},
    {"desktop-z170-gtx960-root-port-in-group", 1, 4},
    {"desktop-z370-gt1030-root-port-in-group", 1, 2},
    {"dgx2-16x-v100-plx-nvswitch", 0, 0},  // no IOMMU
    {"epyc-h100nvl-vfio-bound", 1, 2},
    {"gb200-4gpu-egm", 4, 4},
    {"hgx-8gpu", 8, 8},
    {"hgx-b200-8gpu-cx7-switch-chains", 0, 0},  // no IOMMU
    {"jetson-orin-arm64-platform-root", 0, 0},  // no GPU on PCI; its adapter is in use
    {"laptop-intel-raptorlake-iommu-on", 0, 1},
    {"laptop-rtx4070m-iommu-off", 0, 0},  // no IOMMU
    {"laptop-thinkpad-alderlake-thunderbolt", 0, 1},
    {"mi300x-8gpu-cx7-switches", 0, 0},  // no IOMMU
    {"mixed-8gpu", 8, 8},
    {"server-amd-genoa-acs-enabled-excerpt", 0, 0},         // no such device
    {"server-broadwell-2x-p100-acs-bits-iommu-off", 0, 0},  // no IOMMU
    {"server-esc8000a-4x-rtx6000ada", 0, 0},                // no IOMMU
    {"supermicro-epyc-no-gpu", 0, 1},
    {"vm-domain-10000", 0, 0},              // no IOMMU
    {"vm-q35-tesla-p100-no-viommu", 0, 0},  // no IOMMU
};

// The reported problems, with the built-in configuration. Where it is 0 the problem is the reason.
const std::vector<std::pair<const char*, size_t>> kCases = {
    {"ADDR-02", 1}, {"ADDR-04", 0},  {"BIND-01", 0},  {"BIND-03", 1},  {"BIND-05", 0},
    {"BIND-07", 1}, {"BIND-09", 1},  {"BIND-11", 1},  {"BIND-13", 2},  {"BIND-15", 8},
    {"IOFD-01", 1}, {"IOMMU-02", 0}, {"IOMMU-04", 0}, {"IOMMU-06", 0}, {"IOMMU-08", 0},
    {"KUBE-02", 8}, {"KUBE-04", 1},  {"KUBE-06", 1},  {"KUBE-08", 1},  {"MISC-02", 0},
    {"NAME-01", 1}, {"NAME-03", 2},  {"NAME-05", 1},  {"NAME-07", 1},  {"NUMA-02", 1},
    {"POWR-01", 0}, {"POWR-03", 0},  {"POWR-05", 0},  {"SRIOV-02", 0}, {"SRIOV-04", 0},
    {"VIA-01", 1},  {"VIA-03", 1},   {"VIA-05", 1},   {"VIA-07", 0},   {"VIA-09", 0},
    {"VIA-11", 2},  {"VIA-13", 2},   {"VIA-15", 0},   {"VIA-17", 0},
};

size_t CountUnits(const FakeResources& resources, bool healthy_only) {
  size_t units = 0;
  for (const auto& entry : resources) {
    units += healthy_only ? entry.second.Healthy() : entry.second.devices.size();
  }
  return units;
}

// Pictures have been taken and published after this.
void PassPictures(const Daemon& daemon) {
  for (int i = 1; i <= 2; ++i) {
    daemon.Signal(SIGHUP);
    REQUIRE(Eventually([&] { return daemon.CountLines({"event=config_reloaded"}) >= i; }, kLong));
  }
}

// True once nothing waits to be bound and nothing is being bound.
bool IsSettled(const Node& node, const Daemon& daemon, const std::vector<std::string>& more) {
  const auto count = [&daemon](const char* event) {
    return daemon.CountLines({std::string("event=") + event});
  };
  const int started = count("bind_started");
  if (started != count("bind_done") + count("bind_failed") + count("bind_stuck")) return false;
  std::vector<std::string> words = {"plan"};
  words.insert(words.end(), more.begin(), more.end());
  const nlohmann::json plan = node.RunJson(words);
  return std::ranges::none_of(
             plan.at("groups"),
             [](const nlohmann::json& group) { return group.at("verdict") == "bind"; }) &&
         started == count("bind_started");
}

// One pod with `count` units, from admission to its end.
void StartOne(const Node& node, FakeKubelet& kubelet, const std::string& resource,
              const std::vector<std::string>& ids, size_t count) {
  const bool gpus = !resource.ends_with("/nic");
  const auto chosen = kubelet.Preferred(resource, ids, {}, static_cast<int>(count));
  REQUIRE(chosen.ok());
  REQUIRE(chosen->size() == count);
  // The list may be a moment behind what the last pod was given of the same group.
  auto answer = kubelet.Allocate(resource, *chosen);
  Eventually([&] { return answer.ok() || (answer = kubelet.Allocate(resource, *chosen)).ok(); },
             kLong);
  INFO(answer.status());
  REQUIRE(answer.ok());
  const auto devices = StartMachine(MachineWith(resource, count, gpus), VariablesOf(*answer));
  INFO(devices.status());
  REQUIRE(devices.ok());
  std::set<std::string> got;
  for (const GuestDevice& device : *devices) got.insert(device.address);
  CHECK(got == std::set<std::string>(chosen->begin(), chosen->end()));
  CHECK(Objections(node.root(), *answer, *devices) == std::vector<std::string>{});
  CHECK(kubelet.PreStart(resource, *chosen).ok());
  kubelet.SetPod("default", "virt-launcher", "compute", resource, *chosen);
  REQUIRE(kubelet.RemovePod("default", "virt-launcher"));
}

// Each count of each resource, one machine after the other: each gets all that is left by the last.
void StartEach(const Node& node, FakeKubelet& kubelet) {
  for (const auto& [resource, state] : kubelet.Resources()) {
    CAPTURE(resource);
    std::vector<std::string> ids;
    for (const auto& entry : state.devices) ids.push_back(entry.first);
    std::ranges::reverse(ids);  // a kubelet gives them in any order
    for (size_t count = 1; count <= std::min(ids.size(), kMostAtOnce); ++count) {
      CAPTURE(count);
      REQUIRE(kubelet.WaitHealthy(resource, ids.size(), kLong));
      StartOne(node, kubelet, resource, ids, count);
    }
  }
}

void CheckMachine(const std::string& machine, size_t units, const std::string& configuration) {
  CAPTURE(machine, configuration);
  const Node node(machine);
  const auto kubelet = node.StartKubelet();
  std::vector<std::string> more;
  if (!configuration.empty()) more = {"--config", node.dir().Write("config.yaml", configuration)};
  const Daemon daemon(node.DaemonArguments(more));
  REQUIRE_FALSE(daemon.WaitForLine({"event=agent_started"}, kLong).empty());
  CHECK(Eventually([&] { return IsSettled(node, daemon, more); }, kLong));
  PassPictures(daemon);
  const bool ready = kubelet->WaitFor(
      [units](const FakeResources& all) { return CountUnits(all, true) == units; }, kLong);
  INFO(daemon.Log());
  REQUIRE(ready);
  CHECK(CountUnits(kubelet->Resources(), false) == units);
  StartEach(node, *kubelet);
}

TEST_CASE(
    "R41 R42 R43 R44 T14 T17: what the built-in configuration offers on a machine, KubeVirt "
    "starts in every count",
    "[node][grpc]") {
  for (const Row& row : kMachines) CheckMachine(row.machine, row.gpus, "");
}

TEST_CASE("R41 R42 R43 R44: so it does where devices of any vendor and class are offered",
          "[node][grpc]") {
  for (const Row& row : kMachines) CheckMachine(row.machine, row.any, kEverything);
}

TEST_CASE("R41 R42 R43 R44: on the machines of reported problems KubeVirt starts what is offered",
          "[node][grpc]") {
  for (const auto& [machine, units] : kCases) {
    CheckMachine(std::string("cases/") + machine, units, "");
  }
}

TEST_CASE("R33: units of one group go to one machine, and a call for a sibling alone is refused",
          "[node][grpc]") {
  const Node node("cases/VIA-11");
  const auto kubelet = node.StartKubelet();
  const Daemon daemon(node.DaemonArguments());
  REQUIRE(
      kubelet->WaitFor([](const FakeResources& all) { return CountUnits(all, true) == 2; }, kLong));
  const FakeResources resources = kubelet->Resources();
  const auto& [resource, state] = *resources.begin();
  const std::string first = state.devices.begin()->first, second = state.devices.rbegin()->first;
  REQUIRE(kubelet->Allocate(resource, {first}).ok());
  const auto sibling = kubelet->Allocate(resource, {second});
  REQUIRE_FALSE(sibling.ok());
  CHECK_THAT(std::string(sibling.status().message()), Catch::Contains("group-split"));
}

TEST_CASE("T15: an answer that is read for both lists of a machine gives one device twice",
          "[node][grpc]") {
  const Node node("hgx-8gpu");
  const auto kubelet = node.StartKubelet();
  const Daemon daemon(node.DaemonArguments());
  REQUIRE(kubelet->WaitHealthy(kH100, 8, kLong));
  const auto answer = kubelet->Allocate(kH100, {"0000:1b:00.0", "0000:43:00.0"});
  REQUIRE(answer.ok());
  Machine machine = MachineWith(kH100, 1);
  machine.host_devices = MachineWith(kH100, 1, false).host_devices;
  CHECK_FALSE(StartMachine(machine, VariablesOf(*answer)).ok());
  CHECK(StartMachine(MachineWith(kH100, 2), VariablesOf(*answer)).ok());
  CHECK(StartMachine(MachineWith(kH100, 2, false), VariablesOf(*answer)).ok());
}

TEST_CASE("every machine is in a table", "[node]") {
  const auto files = [](const std::string& directory) {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      if (entry.path().extension() == ".yaml") names.insert(entry.path().stem());
    }
    return names;
  };
  std::set<std::string> machines, cases;
  for (const Row& row : kMachines) machines.insert(row.machine);
  for (const auto& entry : kCases) cases.insert(entry.first);
  CHECK(files(MACHINES) == machines);
  CHECK(files(std::string(MACHINES) + "/cases") == cases);
}

}  // namespace
}  // namespace vfio_agent::kubevirt
