// Whole boards, halves of them and GPU-NIC pairs, from the configuration to KubeVirt's machine.
#include <csignal>
#include <set>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "test/agent/node.h"
#include "test/kubevirt/guest.h"

namespace vfio_agent::kubevirt {
namespace {

constexpr absl::Duration kLong = absl::Seconds(60);
constexpr char kBoard[] = "nvidia.com/hgx";

using Ids = std::vector<std::string>;
const Ids kGpus = {"0000:1b:00.0", "0000:43:00.0", "0000:52:00.0", "0000:61:00.0",
                   "0000:9d:00.0", "0000:c3:00.0", "0000:d1:00.0", "0000:df:00.0"};
const Ids kSwitches = {"0000:05:00.0", "0000:06:00.0", "0000:07:00.0", "0000:08:00.0"};

// Eight GPUs and the NVSwitches; `unit`: bundle or device.
std::string WholeBoard(const std::string& unit, const std::string& gpus = "8") {
  return "resources:\n"
         "  - name: nvidia.com/hgx\n"
         "    bundle:\n"
         "      unit: " +
         unit +
         "\n"
         "      members:\n"
         "        - {select: [{vendor: \"10de\", class: \"0302\"}], count: " +
         gpus +
         "}\n"
         "        - {select: [{vendor: \"10de\", device: \"22a3\"}], count: all}\n";
}

constexpr char kHalves[] = R"(
resources:
  - name: nvidia.com/hgx
    select: [{vendor: "10de", class: "0302"}]
    partitions: [[0, 1, 2, 3, 4, 5, 6, 7], [0, 1, 2, 3], [4, 5, 6, 7], [0, 1], [2, 3], [4, 5], [6, 7]]
)";

// The adapters are up on this machine, and nobody uses them.
constexpr char kPairs[] = R"(
resources:
  - name: nvidia.com/hgx
    bundle:
      unit: device
      members:
        - select: [{vendor: "10de", class: "0302"}]
        - {select: [{vendor: "15b3", class: "0207"}], near: switch}
guard:
  override: ["0000:18:00.0", "0000:40:00.0", "0000:4f:00.0", "0000:5e:00.0",
             "0000:9a:00.0", "0000:c0:00.0", "0000:ce:00.0", "0000:dc:00.0"]
)";

// A daemon with the configuration, and a kubelet that has heard of `units` healthy ones.
struct Stand {
  Stand(const std::string& configuration, size_t units)
      : file(node.dir().Write("config.yaml", configuration)) {
    kubelet = node.StartKubelet();
    daemon = std::make_unique<Daemon>(node.DaemonArguments({"--config", file}));
    const bool ready = kubelet->WaitHealthy(kBoard, units, kLong);
    INFO(daemon->Log());
    REQUIRE(ready);
    const FakeResources resources = kubelet->Resources();
    for (const auto& entry : resources.at(kBoard).devices) ids.push_back(entry.first);
    CHECK(ids.size() == units);
  }

  Ids Prefer(const Ids& available, size_t count) const {
    const auto chosen = kubelet->Preferred(kBoard, available, {}, static_cast<int>(count));
    REQUIRE(chosen.ok());
    Ids sorted = *chosen;
    std::ranges::sort(sorted);
    return sorted;
  }
  std::string Refused(const Ids& some) const {
    const auto answer = kubelet->Allocate(kBoard, some);
    REQUIRE_FALSE(answer.ok());
    return std::string(answer.status().message());
  }

  const Node node{"hgx-8gpu"};
  const std::string file;
  std::unique_ptr<FakeKubelet> kubelet;
  std::unique_ptr<Daemon> daemon;
  Ids ids;
};

// The addresses that KubeVirt gives a machine with one hostDevices item for each of `ids`.
Ids StartWith(const Stand& stand, const Ids& some, Variables* variables = nullptr) {
  const auto answer = stand.kubelet->Allocate(kBoard, some);
  INFO(answer.status());
  REQUIRE(answer.ok());
  const Variables got = VariablesOf(*answer);
  if (variables != nullptr) *variables = got;
  const auto devices = StartMachine(MachineWith(kBoard, some.size(), false), got);
  INFO(devices.status());
  REQUIRE(devices.ok());
  CHECK(Objections(stand.node.root(), *answer, *devices) == Ids{});
  Ids addresses;
  for (const GuestDevice& device : *devices) addresses.push_back(device.address);
  std::ranges::sort(addresses);
  return addresses;
}

Ids Without(const Ids& all, const Ids& some) {
  Ids left;
  std::ranges::copy_if(all, std::back_inserter(left), [&some](const std::string& id) {
    return std::ranges::count(some, id) == 0;
  });
  return left;
}

TEST_CASE("a machine with an item for each device of a board gets the whole board",
          "[node][grpc]") {
  const Stand stand(WholeBoard("device"), 12);
  Ids board = kGpus;
  board.insert(board.end(), kSwitches.begin(), kSwitches.end());
  std::ranges::sort(board);
  CHECK(stand.Prefer(stand.ids, 12) == board);
  CHECK(StartWith(stand, board) == board);
}

TEST_CASE("half of a board is refused with the reason, and is not preferred", "[node][grpc]") {
  const Stand stand(WholeBoard("device"), 12);
  CHECK(stand.Prefer(stand.ids, 4).empty());
  CHECK_THAT(stand.Refused({kGpus.begin(), kGpus.begin() + 4}),
             Catch::Contains("is a part of a bundle, which is given whole") &&
                 Catch::EndsWith("Ask for 12, or a multiple"));
}

TEST_CASE("a board as one unit gives a container all of it, and KubeVirt's machine the first",
          "[node][grpc]") {
  const Stand stand(WholeBoard("bundle"), 1);
  CHECK(stand.ids == Ids{kGpus[0]});
  const auto answer = stand.kubelet->Allocate(kBoard, stand.ids);
  REQUIRE(answer.ok());
  const Variables variables = VariablesOf(*answer);
  Ids board = kGpus;
  board.insert(board.end(), kSwitches.begin(), kSwitches.end());
  CHECK(variables.at("PCI_RESOURCE_NVIDIA_COM_HGX") == absl::StrJoin(board, ","));
  CHECK(answer->devices_size() == 13);  // /dev/vfio/vfio and one for each group
  const auto devices = StartMachine(MachineWith(kBoard, 1, true), variables);
  REQUIRE(devices.ok());
  REQUIRE(devices->size() == 1);
  CHECK(devices->front().address == kGpus[0]);
  CHECK_FALSE(StartMachine(MachineWith(kBoard, 12, true), {}).ok());
}

TEST_CASE("while a pod has a board, release leaves each group of it alone", "[node][grpc]") {
  const Stand stand(WholeBoard("bundle"), 1);
  stand.kubelet->SetPod("team", "vm", "compute", kBoard, {kGpus[0]});
  const auto release = [&stand] {
    return stand.node.Run({"release", kSwitches[3], "--config", stand.file, "--device-plugin-dir",
                           stand.node.kubelet_dir(), "--kubelet-root-dir",
                           stand.node.kubelet_root()});
  };
  const ProgramResult beside = release();
  CHECK(beside.exit_code == 3);
  CHECK_THAT(beside.out, Catch::Contains("serves group 15 to the kubelet as nvidia.com/hgx"));
  stand.daemon->Signal(SIGKILL);
  REQUIRE(stand.daemon->WaitForEnd(kLong) != -1);
  const ProgramResult alone = release();
  INFO(alone.out << alone.err);
  CHECK(alone.exit_code == 3);
  CHECK_THAT(alone.out, Catch::Contains("pod team/vm"));
}

TEST_CASE("two machines with four GPUs get halves of the table, and no others do", "[node][grpc]") {
  const Stand stand(kHalves, 8);
  const Ids first = stand.Prefer(stand.ids, 4);
  CHECK(first == Ids(kGpus.begin(), kGpus.begin() + 4));
  CHECK(StartWith(stand, first) == first);
  const Ids second = stand.Prefer(Without(stand.ids, first), 4);
  CHECK(second == Ids(kGpus.begin() + 4, kGpus.end()));
  CHECK_THAT(stand.Refused({kGpus[4], kGpus[5], kGpus[6]}),
             Catch::Contains("there is none of 3, only of 2, 4, 8"));
  CHECK_THAT(stand.Refused({kGpus[5], kGpus[6]}), Catch::Contains("those of 2 are"));
  CHECK(StartWith(stand, second) == second);
}

TEST_CASE("a GPU and the adapter under its switch go to one machine, which is told the pair",
          "[node][grpc]") {
  const Stand stand(kPairs, 16);
  const Ids pair = stand.Prefer(stand.ids, 2);
  Variables variables;
  CHECK(StartWith(stand, pair, &variables) == pair);
  CHECK(variables.at("VFIO_AGENT_PAIRS_NVIDIA_COM_HGX") == "0000:1b:00.0=0000:18:00.0");
  const Ids two = stand.Prefer(Without(stand.ids, pair), 4);
  CHECK(two == Ids{"0000:40:00.0", "0000:43:00.0", "0000:4f:00.0", "0000:52:00.0"});
  CHECK(StartWith(stand, two, &variables) == two);
  CHECK(variables.at("VFIO_AGENT_PAIRS_NVIDIA_COM_HGX") ==
        "0000:43:00.0=0000:40:00.0,0000:52:00.0=0000:4f:00.0");
}

TEST_CASE("what a unit is, plan, explain and list say, and kubevirt what a machine lists",
          "[node]") {
  const Node node("hgx-8gpu");
  const std::string one = node.dir().Write("one.yaml", WholeBoard("bundle"));
  const std::string each = node.dir().Write("each.yaml", WholeBoard("device"));
  const std::string parts = absl::StrJoin(kGpus, " ") + " " + absl::StrJoin(kSwitches, " ");
  CHECK_THAT(node.Run({"plan", "--config", one}).out,
             Catch::Contains("# one unit of nvidia.com/hgx: " + parts));
  CHECK_THAT(node.Run({"explain", kBoard, "--config", one}).out,
             Catch::Contains("    is " + parts));
  CHECK_THAT(node.Run({"list", "resources", "--config", one}).out, Catch::Contains("23 +11"));
  CHECK_THAT(node.Run({"list", "resources", "--config", one, "-o", "wide"}).out,
             Catch::Contains(parts));
  CHECK_THAT(node.Run({"kubevirt", "--config", one}).out,
             Catch::Contains("gives a machine the first device only"));
  CHECK_THAT(node.Run({"explain", kBoard, "--config", each}).out, Catch::Contains("  together: "));
  CHECK_THAT(node.Run({"kubevirt", "--config", each}).out,
             Catch::Contains("# a bundle, whole: a machine can have 12 of these") &&
                 Catch::Contains("device12"));
  const nlohmann::json shown = node.RunJson({"config", "show", "--config", each});
  CHECK(shown.at("resources").at(0).at("bundle").at("unit") == "device");
  CHECK_FALSE(shown.at("resources").at(0).contains("select"));
  const std::string again =
      node.dir().Write("again.yaml", node.Run({"config", "show", "--config", each}).out);
  CHECK(node.Run({"config", "check", "--config", again}).exit_code == 0);
}

TEST_CASE("half a board as a unit is refused, and the plan says what is missing", "[node]") {
  const Node node("hgx-8gpu");
  const std::string file = node.dir().Write("c.yaml", WholeBoard("bundle", "4"));
  const ProgramResult plan = node.Run({"plan", "--exit-code", "--config", file});
  CHECK(plan.exit_code == 3);
  CHECK_THAT(plan.out, Catch::Contains("a part of a board: 0000:05:00.0"));
  const std::string six = node.dir().Write("d.yaml", WholeBoard("bundle", "6"));
  CHECK_THAT(node.Run({"plan", "--config", six}).out, Catch::Contains("2 of 6 GPUs"));
}

}  // namespace
}  // namespace vfio_agent::kubevirt
