// Extended GPU Memory of a Grace machine, from sysfs to what KubeVirt's machine is given.
#include <fstream>

#include "absl/strings/str_join.h"
#include "test/agent/node.h"
#include "test/kubevirt/guest.h"

namespace vfio_agent::kubevirt {
namespace {

using Ids = std::vector<std::string>;

constexpr absl::Duration kLong = absl::Seconds(60);
constexpr char kGb200[] = "nvidia.com/gb200";
constexpr char kPolicy[] = "resources: [{preset: nvidia, name: nvidia.com/gb200}]\n";
const Ids kGpus = {"0008:01:00.0", "0009:01:00.0", "0018:01:00.0", "0019:01:00.0"};

struct Tray {
  Tray() {
    kubelet = node.StartKubelet();
    daemon = std::make_unique<Daemon>(node.DaemonArguments({"--config", file}));
    const bool ready = kubelet->WaitHealthy(kGb200, kGpus.size(), kLong);
    INFO(daemon->Log());
    REQUIRE(ready);
  }

  // What is handed out below /dev that is no VFIO's; or the refusal.
  std::string Memory(const Ids& ids) const {
    const auto answer = kubelet->Allocate(kGb200, ids);
    if (!answer.ok()) return std::string(answer.status().message());
    const auto devices = StartMachine(MachineWith(kGb200, ids.size()), VariablesOf(*answer));
    REQUIRE(devices.ok());
    CHECK(Objections(node.root(), *answer, *devices) == Ids{});
    Ids nodes;
    for (const auto& spec : answer->devices()) {
      if (!spec.host_path().starts_with("/dev/vfio/")) nodes.push_back(spec.host_path());
    }
    return absl::StrJoin(nodes, " ");
  }

  Ids Prefer(const Ids& available, int count) const {
    const auto chosen = kubelet->Preferred(kGb200, available, {}, count);
    REQUIRE(chosen.ok());
    Ids sorted = *chosen;
    std::ranges::sort(sorted);
    return sorted;
  }

  const Node node{"gb200-4gpu-egm"};
  const std::string file = node.dir().Write("config.yaml", kPolicy);
  std::unique_ptr<FakeKubelet> kubelet;
  std::unique_ptr<Daemon> daemon;
};

TEST_CASE("a machine gets a region of Extended GPU Memory with all of its GPUs, else none",
          "[node][grpc]") {
  const Tray tray;
  CHECK(tray.Prefer(kGpus, 2) == Ids{kGpus[0], kGpus[1]});
  CHECK(tray.Prefer({kGpus[1], kGpus[2], kGpus[3]}, 2) == Ids{kGpus[2], kGpus[3]});
  CHECK(tray.Prefer({kGpus[1], kGpus[2], kGpus[3]}, 1) == Ids{kGpus[1]});
  CHECK(tray.Memory({kGpus[0]}).empty());
  CHECK(tray.Memory({kGpus[1], kGpus[2]}).empty());
  CHECK(tray.Memory({kGpus[2], kGpus[3]}) == "/dev/egm5");
  CHECK(tray.Memory(kGpus) == "/dev/egm4 /dev/egm5");
}

TEST_CASE("a region that the kernel gives another GPU is not handed out with the old ones",
          "[node][grpc]") {
  const Tray tray;
  std::ofstream(tray.node.root() + "/sys/class/egm/egm4/gpu_devices")
      << "0008:01:00.0\n0009:01:00.0\n0018:01:00.0\n";
  // Until the daemon has read the node again Allocate refuses; then the two are not all any more.
  REQUIRE(Eventually(
      [&] {
        const std::string memory = tray.Memory({kGpus[0], kGpus[1]});
        if (!memory.empty()) CHECK_THAT(memory, Catch::Contains("/dev/egm4: group-changed"));
        return memory.empty();
      },
      kLong));
  CHECK(tray.Memory({kGpus[0], kGpus[1], kGpus[2]}) == "/dev/egm4");
}

TEST_CASE("who can have a region, plan, explain and status say", "[node][grpc]") {
  const Tray tray;
  const std::string line =
      "/dev/egm5 (Extended GPU Memory of 0018:01:00.0 0019:01:00.0) goes to a pod that has all of "
      "them: 2 of nvidia.com/gb200";
  CHECK_THAT(tray.node.Run({"plan", "--config", tray.file}).out, Catch::Contains("# " + line));
  CHECK_THAT(tray.node.Run({"explain", kGpus[3], "--config", tray.file}).out,
             Catch::Contains("  memory\n    " + line));
  CHECK_THAT(tray.node.Run({"explain", kGb200, "--config", tray.file}).out,
             Catch::Contains("  " + line));
  CHECK_THAT(tray.node.Run({"status"}).out, Catch::Contains("nvidia.com/gb200: " + line));
  const nlohmann::json plan = tray.node.RunJson({"plan", "--config", tray.file});
  CHECK(plan.at("egm").at(1).at("node") == "/dev/egm5");
  CHECK(plan.at("egm").at(1).at("units") == nlohmann::json({kGpus[2], kGpus[3]}));
  const std::string half = tray.node.dir().Write(
      "half.yaml",
      "resources: [{preset: nvidia, name: nvidia.com/gb200, exclude: [{address: "
      "\"0009:01:00.0\"}]}]\n");
  CHECK_THAT(tray.node.Run({"plan", "--config", half}).out,
             Catch::Contains("goes to nobody: 0009:01:00.0 is given to no guest"));
}

TEST_CASE("the NUMA node that the kubelet is told of a Grace GPU is its own", "[node][grpc]") {
  const Tray tray;
  std::vector<int64_t> nodes;
  const FakeResources resources = tray.kubelet->Resources();
  for (const std::string& gpu : kGpus) {
    const auto& numa = resources.at(kGb200).devices.at(gpu).numa;
    nodes.insert(nodes.end(), numa.begin(), numa.end());
  }
  CHECK(nodes == std::vector<int64_t>{2, 10, 18, 26});
}

}  // namespace
}  // namespace vfio_agent::kubevirt
