// `vfio-agent release` beside a daemon on a simulated node: the daemon says what it serves.
#include <csignal>
#include <future>
#include <map>

#include "agent/work/group_lock.h"
#include "test/agent/node.h"

namespace vfio_agent {
namespace {

constexpr absl::Duration kLong = absl::Seconds(60);
constexpr char kFirst[] = "0000:65:00.0";   // group 33
constexpr char kSecond[] = "0000:81:00.0";  // group 34
constexpr char kTwo[] = R"(name: two
host: {iommu_active: true, iommu: intel}
devices:
- {address: "0000:65:00.0", vendor: "10de", device: "2330", class: "0x030200", driver: nvidia, iommu_group: 33}
- {address: "0000:81:00.0", vendor: "10de", device: "2330", class: "0x030200", driver: nvidia, iommu_group: 34}
)";
constexpr char kBoth[] = "apiVersion: vfio-agent/v1\n";
constexpr char kWithoutSecond[] =
    "resources: [{select: [{vendor: \"10de\"}], exclude: [{address: \"0000:81:00.0\"}]}]\n";

// A daemon that has taken both devices and serves them.
struct Beside {
  explicit Beside(std::vector<std::string> more = {}) : kubelet(node.StartKubelet()) {
    Configure(kBoth);
    more.insert(more.end(), {"--config", config()});
    daemon = std::make_unique<Daemon>(node.DaemonArguments(std::move(more)));
    REQUIRE(Sees({{kFirst, true}, {kSecond, true}}));
  }

  std::string config() const { return node.dir().path() + "/config.yaml"; }
  void Configure(const std::string& text) const { node.dir().Write("config.yaml", text); }
  // The units that the kubelet is told of, and which of them are healthy.
  bool Sees(const std::map<std::string, bool>& wanted) const {
    const auto is_wanted = [&wanted](const FakeResources& resources) {
      const auto found = resources.find(kH100);
      std::map<std::string, bool> seen;
      if (found == resources.end()) return wanted.empty();
      for (const auto& [id, device] : found->second.devices) seen[id] = device.healthy;
      return seen == wanted;
    };
    return kubelet->WaitFor(is_wanted, kLong);
  }
  ProgramResult Release(const std::vector<std::string>& selectors) const {
    std::vector<std::string> words = {"release"};
    words.insert(words.end(), selectors.begin(), selectors.end());
    words.insert(words.end(), {"--config", config(), "--device-plugin-dir", node.kubelet_dir(),
                               "--kubelet-root-dir", node.kubelet_root()});
    return node.Run(std::move(words));
  }

  Node node{Node::MachineText{kTwo}};
  std::unique_ptr<FakeKubelet> kubelet;
  std::unique_ptr<Daemon> daemon;
};

std::string ServesText(const Beside& beside, int group) {
  return "the daemon (pid " + std::to_string(beside.daemon->pid()) + ") serves group " +
         std::to_string(group) + " to the kubelet as " + kH100;
}

TEST_CASE("R52: release takes nothing from under a daemon that offers it", "[node][grpc]") {
  const Beside beside;
  const std::string writes = beside.node.Writes();
  const ProgramResult one = beside.Release({kSecond});
  CHECK(one.exit_code == 3);
  CHECK_THAT(one.out, Catch::Contains("held") && Catch::Contains(ServesText(beside, 34)));
  CHECK_THAT(one.out, Catch::Contains("resources[].exclude"));
  const ProgramResult all = beside.Release({});
  CHECK(all.exit_code == 3);
  CHECK_THAT(all.out,
             Catch::Contains(ServesText(beside, 33)) && Catch::Contains(ServesText(beside, 34)));
  CHECK(beside.node.Writes() == writes);
}

TEST_CASE("R52: what a daemon offers is for it to say, not for a newer configuration",
          "[node][grpc]") {
  const Beside beside;
  const std::string writes = beside.node.Writes();
  beside.Configure(kWithoutSecond);  // and no SIGHUP
  const ProgramResult refused = beside.Release({kSecond});
  CHECK(refused.exit_code == 3);
  CHECK_THAT(refused.out, Catch::Contains(ServesText(beside, 34)));
  CHECK(beside.node.Writes() == writes);
}

TEST_CASE("R52: a group that the daemon offers no more can be released beside it", "[node][grpc]") {
  const Beside beside;
  beside.Configure(kWithoutSecond);
  beside.daemon->Signal(SIGHUP);
  SECTION("while its unit is listed still, as unhealthy") {
    REQUIRE(beside.Sees({{kFirst, true}, {kSecond, false}}));
  }
  SECTION("once it is delisted") { REQUIRE(beside.Sees({{kFirst, true}})); }
  // The kubelet is told before the status socket is.
  CHECK(Eventually([&] { return beside.Release({kSecond}).exit_code == 0; }, kLong));
  CHECK(beside.node.DriverOf(kSecond) == "nvidia");
  CHECK(beside.node.DriverOf(kFirst) == "vfio-pci");
  CHECK(beside.Release({kFirst}).exit_code == 3);
}

TEST_CASE("R52: beside a daemon that does not answer nothing is released", "[node][grpc]") {
  const Beside beside;
  beside.Configure(kWithoutSecond);
  const std::string writes = beside.node.Writes();
  beside.daemon->Signal(SIGSTOP);
  const ProgramResult result = beside.Release({kFirst, kSecond});
  CHECK(result.exit_code == 3);
  const std::string pid = std::to_string(beside.daemon->pid());
  for (const char* group : {"33", "34"}) {
    CHECK_THAT(result.out, Catch::Contains("the daemon (pid " + pid + ") may serve group " + group +
                                           " and cannot be asked"));
  }
  CHECK_THAT(result.out, Catch::Contains(beside.node.state_dir() + "/status.sock"));
  CHECK(beside.node.Writes() == writes);
}

TEST_CASE("R52: after a daemon that was killed everything can be released", "[node][grpc]") {
  const Beside beside;
  beside.daemon->Signal(SIGKILL);
  REQUIRE(beside.daemon->WaitForEnd(kLong) == 128 + SIGKILL);
  CHECK(beside.Release({}).exit_code == 0);
  CHECK(beside.node.DriverOf(kFirst) == "nvidia");
  CHECK(beside.node.DriverOf(kSecond) == "nvidia");
}

TEST_CASE("R52: what a daemon has come to offer since a release began is left to it",
          "[node][grpc]") {
  const Beside beside;
  beside.daemon->Signal(SIGKILL);
  REQUIRE(beside.daemon->WaitForEnd(kLong) == 128 + SIGKILL);
  beside.node.Control(R"(fault {device: "0000:65:00.0", op: unbind, block: forever, once: true})");
  auto release = std::async(std::launch::async, [&beside] {
    return beside.Release({"--parallel", "1", "--unbind-timeout", "50s"});
  });
  REQUIRE(Eventually([&] { return IsGroupLocked(beside.node.state_dir(), 33); }, kLong));
  const Daemon next(beside.node.DaemonArguments({"--config", beside.config()}));
  REQUIRE(beside.kubelet->WaitHealthy(kH100, 1, kLong));
  REQUIRE(Eventually(
      [&] { return beside.node.Run({"status"}).out.find(kSecond) != std::string::npos; }, kLong));
  beside.node.Control(std::string("release-blocked ") + kFirst);
  const ProgramResult result = release.get();
  CHECK(result.exit_code == 3);
  CHECK_THAT(result.out, Catch::Contains("serves group 34 to the kubelet as"));
  CHECK(beside.node.DriverOf(kSecond) == "vfio-pci");
}

TEST_CASE("R52: the daemon's own release at its end does not refuse what it has served",
          "[node][grpc]") {
  const Beside beside({"--on-exit", "release"});
  beside.daemon->Signal(SIGTERM);
  CHECK(beside.daemon->WaitForEnd(kLong) == 0);
  CHECK(beside.node.DriverOf(kFirst) == "nvidia");
  CHECK(beside.node.DriverOf(kSecond) == "nvidia");
}

}  // namespace
}  // namespace vfio_agent
