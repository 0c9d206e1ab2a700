// Who has what, end to end: the daemon on a simulated node with groups of several units, and a
// kubelet that tells its pods.
#include <future>

#include "test/agent/boards.h"

namespace vfio_agent {
namespace {

using Generation = FakeKubelet::Generation;

constexpr char kOneCard[] = R"(name: one card
host: {iommu_active: true, iommu: intel}
devices:
- {address: "0000:17:00.0", vendor: "10de", device: "2330", class: "0x030200", driver: nvidia, iommu_group: 33}
)";

TEST_CASE("R33: the sibling of a unit that a pod got is withheld, and comes back when the pod ends",
          "[node][grpc]") {
  Boards boards(GENERATE(Generation::k136, Generation::k137));
  boards.Start({"--resync", "1h"});
  REQUIRE(boards.Sees("+++"));
  REQUIRE(boards.Allocate({kA}).ok());
  const absl::Status split = boards.Allocate({kB});
  CHECK_THAT(std::string(split.message()), Catch::Contains("group-split"));
  CHECK(boards.Sees("+-+"));
  boards.SetPod({kA});
  CHECK_FALSE(
      boards.daemon
          ->WaitForLine({"event=unit_held", kA, "pod=\"pod team/vm (container compute)\""}, kLong)
          .empty());
  CHECK_FALSE(boards.daemon
                  ->WaitForLine({"event=unit_unhealthy", kB,
                                 "group-split: pod team/vm (container compute) has 0000:17:00.0",
                                 "remedy=\"another pod has a device of the same group"},
                                kLong)
                  .empty());
  REQUIRE(boards.kubelet->RemovePod("team", "vm"));
  CHECK(boards.Sees("+++"));
  CHECK_FALSE(boards.daemon->WaitForLine({"event=unit_free", kA, "team/vm"}, kLong).empty());
  CHECK(boards.Allocate({kB}).ok());
}

TEST_CASE("R33: a unit whose pod was never admitted is free again, and so is its sibling",
          "[node][grpc]") {
  Boards boards;
  boards.Start({"--resync", "1h"});
  REQUIRE(boards.Sees("+++"));
  REQUIRE(boards.Allocate({kA}).ok());
  CHECK(boards.Sees("+-+"));
  CHECK(boards.Sees("+++"));  // ten seconds later, by the kubelet's list
}

TEST_CASE("R33: two Allocates within a millisecond never split a group", "[node][grpc]") {
  Boards boards;
  boards.Start();
  REQUIRE(boards.Sees("+++"));
  auto first = std::async(std::launch::async, [&] { return boards.Allocate({kA}).ok(); });
  const bool second = boards.Allocate({kB}).ok();
  CHECK(first.get() != second);
}

TEST_CASE("R51: a kubelet that does not tell its pods gets lone groups only, until it does",
          "[node][grpc]") {
  Boards boards;
  boards.kubelet->RefusePodResources("not now");
  boards.Start();
  REQUIRE(boards.Sees("--+"));
  CHECK_FALSE(boards.daemon->WaitForLine({"event=pods_unknown", "not now"}, kLong).empty());
  boards.kubelet->RefusePodResources("");
  CHECK(boards.Sees("+++"));
  CHECK_FALSE(boards.daemon->WaitForLine({"event=pods_known"}, kLong).empty());
}

TEST_CASE("R12, T1: a kubelet that has dropped the resource without a word is registered with anew",
          "[node][grpc]") {
  Boards boards;
  boards.Start();
  REQUIRE(boards.Sees("+++"));
  boards.kubelet->DropSilently(kH100);
  REQUIRE(boards.Sees("---"));
  CHECK(boards.Sees("+++"));
  CHECK(boards.kubelet->Resources().at(kH100).registrations == 2);
  CHECK_FALSE(
      boards.daemon
          ->WaitForLine({"event=register_failed", "counts none of its 3 healthy units"}, kLong)
          .empty());
  CHECK(boards.Allocate({kLone}).ok());
}

TEST_CASE("R49: a lone group is preferred for one unit, a whole group for two", "[node][grpc]") {
  Boards boards;
  boards.Start();
  REQUIRE(boards.Sees("+++"));
  CHECK(*boards.kubelet->Preferred(kH100, {kB, kA, kLone}, {}, 1) == Ids{kLone});
  CHECK(*boards.kubelet->Preferred(kH100, {kB, kLone, kA}, {}, 2) == Ids{kA, kB});
  CHECK(*boards.kubelet->Preferred(kH100, {kB, kLone, kA}, {kB}, 2) == Ids{kA, kB});
}

TEST_CASE("R30: a group that a process opened without a pod is unhealthy until it closes it",
          "[node][grpc]") {
  Boards boards;
  boards.Start();
  REQUIRE(boards.Sees("+++"));
  boards.node.Control("hold 34 4242 qemu-kvm");
  CHECK(boards.Sees("++-"));
  CHECK_FALSE(
      boards.daemon->WaitForLine({"event=unit_unhealthy", kLone, "in-use-holder", "4242"}, kLong)
          .empty());
  boards.node.Control("free 34");
  CHECK(boards.Sees("+++"));
}

TEST_CASE("R28: a unit that a pod has and a process has open stays healthy", "[node][grpc]") {
  Boards boards;
  boards.SetPod({kLone});
  boards.node.Control("hold 34 4242 qemu-kvm");
  boards.Start();
  REQUIRE(boards.Sees("+++"));
  REQUIRE_FALSE(boards.daemon->WaitForLine({"event=unit_held", kLone}, kLong).empty());
  boards.node.Control("hold 33 4243 qemu-kvm");  // seen by the same look
  REQUIRE(boards.Sees("--+"));
  CHECK(boards.daemon->CountLines({"event=unit_unhealthy", kLone}) == 0);
}

TEST_CASE("R25: a resource that is renamed under a pod is offered anew once the pod has ended",
          "[node][grpc]") {
  Boards boards;
  const std::string config = boards.node.dir().Write("config.yaml", "apiVersion: vfio-agent/v1\n");
  boards.Start({"--config", config});
  REQUIRE(boards.Sees("+++"));
  boards.SetPod({kLone});
  REQUIRE_FALSE(boards.daemon->WaitForLine({"event=unit_held", kLone}, kLong).empty());
  boards.node.dir().Write("config.yaml", "aliases: {\"10de:2330\": NEW}\n");
  boards.daemon->Signal(SIGHUP);
  CHECK(boards.Sees("++.", "nvidia.com/NEW"));
  CHECK(boards.Sees("..-"));
  REQUIRE(boards.kubelet->RemovePod("team", "vm"));
  CHECK(boards.Sees("+++", "nvidia.com/NEW"));
  CHECK(boards.Sees("..."));
}

TEST_CASE("R52: what was allocated a moment ago is not released at the daemon's end",
          "[node][grpc]") {
  Boards boards;
  boards.Start({"--on-exit", "release"});
  REQUIRE(boards.Sees("+++"));
  // Bound by others: only what the agent has taken is released.
  boards.node.Control("rebind " + std::string(kLone) + " nvidia");
  REQUIRE_FALSE(boards.daemon->WaitForLine({"event=bind_done", kLone}, kLong).empty());
  REQUIRE(Eventually([&] { return boards.Allocate({kLone}).ok(); }, kLong));
  boards.daemon->Signal(SIGTERM);
  CHECK(boards.daemon->WaitForEnd(kLong) == 3);
  CHECK(boards.node.DriverOf(kLone) == "vfio-pci");
  CHECK_THAT(boards.daemon->Log(), Catch::Contains("it was just allocated"));
}

TEST_CASE("list resources tells which pod has what, and why the rest is withheld", "[node][grpc]") {
  Boards boards;
  boards.SetPod({kA});
  const std::vector<std::string> place = {"--device-plugin-dir", boards.node.kubelet_dir(),
                                          "--kubelet-root-dir", boards.node.kubelet_root()};
  std::vector<std::string> words = {"list", "resources", "-o", "wide"};
  words.insert(words.end(), place.begin(), place.end());
  const ProgramResult table = boards.node.Run(words);
  CHECK_THAT(table.out,
             Catch::Contains("held      pod team/vm (container compute)") &&
                 Catch::Contains("withheld  group-split: pod team/vm (container compute) has"));
  words = {"list", "resources"};
  words.insert(words.end(), place.begin(), place.end());
  const auto units = boards.node.RunJson(words)["resources"][0]["units"];
  CHECK(
      units[0]["pods"] ==
      nlohmann::json::array(
          {{{"namespace", "team"}, {"pod", "vm"}, {"container", "compute"}, {"resource", kH100}}}));
  CHECK(units[1]["state"] == "withheld");
  CHECK(units[2]["state"] == "ready");
}

TEST_CASE("R56: beside another manager's pod nothing is bound, until that pod has gone",
          "[node][grpc]") {
  Node node{Node::MachineText{kOneCard}};
  const auto kubelet = node.StartKubelet(Generation::k136);
  kubelet->SetPod("gpu-operator", "nvidia-vfio-manager-x7k2p", "main", kH100, {});
  Daemon daemon(node.DaemonArguments({"--resync", "1h"}));
  CHECK_FALSE(daemon
                  .WaitForLine({"event=group_refused", "code=foreign-manager",
                                "pod gpu-operator/nvidia-vfio-manager-x7k2p",
                                "nvidia.com/gpu.deploy.vfio-manager=false"},
                               kLong)
                  .empty());
  CHECK(node.DriverOf(kA) == "nvidia");
  REQUIRE(kubelet->RemovePod("gpu-operator", "nvidia-vfio-manager-x7k2p"));
  CHECK_FALSE(daemon.WaitForLine({"event=bind_done", kA}, kLong).empty());
}

}  // namespace
}  // namespace vfio_agent
