// A machine with eight GPUs gets one whole board, and two with four get halves that share no
// switch, whoever comes first.
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "test/agent/node.h"
#include "test/kubevirt/guest.h"

namespace vfio_agent::kubevirt {
namespace {

using Ids = std::vector<std::string>;

constexpr absl::Duration kLong = absl::Seconds(60);
constexpr char kGpus[] = "nvidia.com/gpu-of-board";

constexpr char kTable[] = R"(
resources:
  - name: nvidia.com/gpu-of-board
    select: [{vendor: "10de", class: "0302"}]
    partitions: [[0, 1, 2, 3, 4, 5, 6, 7], [0, 1, 2, 3], [4, 5, 6, 7], [0, 1], [2, 3], [4, 5], [6, 7]]
)";
constexpr char kNoTable[] = R"(
resources:
  - name: nvidia.com/gpu-of-board
    select: [{vendor: "10de", class: "0302"}]
)";

// The recorded DGX-2 as it were with its IOMMU on and each function alone in its group.
std::string Dgx2WithIommu() {
  std::ifstream file(std::string(MACHINES) + "/dgx2-16x-v100-plx-nvswitch.yaml");
  std::string text, line;
  for (int group = 1; std::getline(file, line);) {
    const std::string none = "iommu_group: null";
    if (const size_t at = line.find(none); at != std::string::npos) {
      line.replace(at, none.size(), "iommu_group: " + std::to_string(group++));
    }
    const std::string off = "iommu_active: null";
    if (const size_t at = line.find(off); at != std::string::npos) {
      line.replace(at, off.size(), "iommu_active: true\n  iommu: intel");
    }
    text += line + "\n";
  }
  return text;
}

struct Board {
  Board(std::unique_ptr<Node> simulated, const std::string& configuration, size_t units)
      : node(std::move(simulated)), file(node->dir().Write("config.yaml", configuration)) {
    kubelet = node->StartKubelet();
    daemon = std::make_unique<Daemon>(node->DaemonArguments({"--config", file}));
    const bool ready = kubelet->WaitHealthy(kGpus, units, kLong);
    INFO(daemon->Log());
    REQUIRE(ready);
    const FakeResources resources = kubelet->Resources();
    for (const auto& entry : resources.at(kGpus).devices) all.push_back(entry.first);
    free = all;
  }

  // A machine as KubeVirt makes it with what the kubelet would give it of what is free.
  Ids Start(const std::string& name, size_t count) {
    const auto chosen = kubelet->Preferred(kGpus, free, {}, static_cast<int>(count));
    REQUIRE(chosen.ok());
    REQUIRE(chosen->size() == count);
    const auto answer = kubelet->Allocate(kGpus, *chosen);
    INFO(answer.status());
    REQUIRE(answer.ok());
    const auto devices = StartMachine(MachineWith(kGpus, count), VariablesOf(*answer));
    REQUIRE(devices.ok());
    CHECK(Objections(node->root(), *answer, *devices) == Ids{});
    kubelet->SetPod("team", name, "compute", kGpus, *chosen);
    Ids got;
    for (const GuestDevice& device : *devices) got.push_back(device.address);
    std::ranges::sort(got);
    std::erase_if(free, [&got](const std::string& id) { return std::ranges::count(got, id) > 0; });
    return got;
  }
  void End(const std::string& name, const Ids& had) {
    REQUIRE(kubelet->RemovePod("team", name));
    free.insert(free.end(), had.begin(), had.end());
    std::ranges::sort(free);
  }

  // The bridges above the devices, by where sysfs has them.
  std::set<std::string> Bridges(const Ids& devices) const {
    std::set<std::string> bridges;
    for (const std::string& device : devices) {
      const std::string place =
          std::filesystem::canonical(node->root() + "/sys/bus/pci/devices/" + device).string();
      const std::vector<std::string> parts = absl::StrSplit(place, '/');
      for (const std::string& part : parts) {
        if (IsPciAddress(part) && part != device) bridges.insert(part);
      }
    }
    return bridges;
  }
  bool ShareBridge(const Ids& a, const Ids& b) const {
    const std::set<std::string> of_a = Bridges(a), of_b = Bridges(b);
    REQUIRE_FALSE(of_a.empty());
    return std::ranges::any_of(of_a, [&of_b](const auto& bridge) { return of_b.contains(bridge); });
  }

  std::unique_ptr<Node> node;
  const std::string file;
  std::unique_ptr<FakeKubelet> kubelet;
  std::unique_ptr<Daemon> daemon;
  Ids all, free;
};

TEST_CASE("two machines with four GPUs get halves that share no switch, in any order",
          "[node][grpc]") {
  const std::string configuration = GENERATE(std::string(kTable), std::string(kNoTable));
  CAPTURE(configuration);
  Board board(std::make_unique<Node>("hgx-8gpu"), configuration, 8);
  const Ids lower(board.all.begin(), board.all.begin() + 4);
  const Ids upper(board.all.begin() + 4, board.all.end());
  CHECK_FALSE(board.ShareBridge(lower, upper));
  CHECK(board.Start("first", 4) == lower);
  CHECK(board.Start("second", 4) == upper);
  // The first ends and comes back while the second runs, and the other way round.
  board.End("first", lower);
  CHECK(board.Start("third", 4) == lower);
  board.End("second", upper);
  CHECK(board.Start("fourth", 4) == upper);
  board.End("third", lower);
  board.End("fourth", upper);
  CHECK(board.Start("all", 8) == board.all);
}

TEST_CASE("while a pair is out a machine with four GPUs gets the half that is whole",
          "[node][grpc]") {
  Board board(std::make_unique<Node>("hgx-8gpu"), kTable, 8);
  const Ids pair = board.Start("pair", 2);
  CHECK(pair == Ids(board.all.begin(), board.all.begin() + 2));
  CHECK(board.Start("half", 4) == Ids(board.all.begin() + 4, board.all.end()));
  CHECK(board.Start("other", 2) == Ids(board.all.begin() + 2, board.all.begin() + 4));
}

TEST_CASE("on a DGX-2 a machine with eight GPUs gets one of its two boards, in any order",
          "[node][grpc]") {
  Board board(std::make_unique<Node>(Node::MachineText{Dgx2WithIommu()}), kNoTable, 16);
  const Ids lower(board.all.begin(), board.all.begin() + 8);
  const Ids upper(board.all.begin() + 8, board.all.end());
  CHECK(board.Start("first", 8) == lower);
  CHECK(board.Start("second", 8) == upper);
  board.End("first", lower);
  CHECK(board.Start("third", 8) == lower);
  CHECK_FALSE(board.ShareBridge(lower, upper));
}

}  // namespace
}  // namespace vfio_agent::kubevirt
