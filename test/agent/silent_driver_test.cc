// A daemon beside a vendor's driver that does not answer for its mediated devices or vGPUs.
#include "sysfs/clock.h"
#include "test/agent/node.h"
#include "test/agent/vgpu_machines.h"

namespace vfio_agent {
namespace {

constexpr absl::Duration kLong = absl::Seconds(60);
constexpr char kQ1[] = "nvidia.com/GRID_T4-1Q";
constexpr char kOneB[] = "nvidia.com/NVIDIA_L40S-1B";
constexpr char kRoom[] = "mdev_supported_types/nvidia-222/available_instances";
constexpr char kBeside[] =
    "- {address: \"0000:5e:00.0\", vendor: \"10de\", device: \"2330\", class: \"030200\", driver: "
    "nvidia, "
    "iommu_group: 6}\n";
constexpr char kMdevConfig[] = R"(
resources: [{select: [{address: "0000:5e:00.0"}]}]
mdev: [{parent: [{address: "0000:3b:00.0"}], types: {GRID T4-1Q: 2}}]
)";
constexpr char kVgpuConfig[] = R"(mode: vm-vgpu
vgpu: [{parent: [{vendor: "10de"}], types: {NVIDIA L40S-1B: 2}}]
)";

struct SilentNode {
  SilentNode(const std::string& machine, const char* config)
      : node(Node::MachineText{machine}),
        kubelet(node.StartKubelet()),
        config_file(node.dir().Write("config.yaml", config)) {}

  void Start(std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--config", config_file});
    daemon = std::make_unique<Daemon>(node.DaemonArguments(std::move(more)));
  }
  void Hang(const std::string& device, const std::string& file) const {
    node.Control("fault {device: '" + device + "', op: 'read:" + file +
                 "', block: forever, unkillable: true}");
  }
  void Answer(const std::string& device) const {
    node.Control("clear-faults");
    node.Control("release-blocked " + device);
  }
  bool Healthy(const std::string& resource, size_t count) const {
    return kubelet->WaitHealthy(resource, count, kLong);
  }

  Node node;
  std::unique_ptr<FakeKubelet> kubelet;
  std::string config_file;
  std::unique_ptr<Daemon> daemon;
};

TEST_CASE("VGPU: units of a card that hangs stay listed, unhealthy, until it answers again",
          "[node][grpc]") {
  SilentNode silent(std::string(kT4Host) + kT4Devices + kBeside, kMdevConfig);
  silent.Start();
  REQUIRE(silent.Healthy(kQ1, 2));
  REQUIRE(silent.Healthy(kH100, 1));
  silent.Hang("0000:3b:00.0", kRoom);
  REQUIRE(silent.Healthy(kQ1, 0));
  CHECK(silent.kubelet->Resources().at(kQ1).devices.size() == 2);
  CHECK_FALSE(
      silent.daemon
          ->WaitForLine({"unbind-stuck", std::string("0000:3b:00.0/") + kRoom, "dmesg"}, kLong)
          .empty());
  // All else goes on.
  CHECK(silent.Healthy(kH100, 1));
  CHECK(silent.kubelet->Allocate(kH100, {"0000:5e:00.0"}).ok());
  CHECK(silent.node.Run({"status"}).exit_code == 0);
  silent.Answer("0000:3b:00.0");
  CHECK(silent.Healthy(kQ1, 2));
}

TEST_CASE("VGPU: a card that hangs from the start keeps no other from being bound",
          "[node][grpc]") {
  SilentNode silent(std::string(kT4Host) + kT4Devices + kBeside, kMdevConfig);
  silent.Hang("0000:3b:00.0", kRoom);
  silent.Start();
  REQUIRE(silent.Healthy(kH100, 1));
  const ProgramResult plan = silent.node.Run({"plan", "--config", silent.config_file});
  CHECK_THAT(plan.out, Catch::Contains("unbind-stuck") &&
                           Catch::Contains("does not answer: reading /sys/bus/pci/devices/") &&
                           !Catch::Contains("vfio-driver-missing"));
  silent.Answer("0000:3b:00.0");
  CHECK(silent.Healthy(kQ1, 2));
}

TEST_CASE("VGPU: functions of a card that hangs stay listed, and the kubelet is told why",
          "[node][grpc]") {
  SilentNode silent(kL40sMachine, kVgpuConfig);
  silent.Start();
  REQUIRE(silent.Healthy(kOneB, 2));
  silent.Hang("0000:41:00.5", "nvidia/creatable_vgpu_types");
  REQUIRE(silent.Healthy(kOneB, 0));
  CHECK(silent.kubelet->Resources().at(kOneB).devices.size() == 2);
  CHECK_THAT(std::string(silent.kubelet->Allocate(kOneB, {"0000:41:00.5"}).status().message()),
             Catch::Contains("does not answer"));
  silent.Answer("0000:41:00.5");
  CHECK(silent.Healthy(kOneB, 2));
}

TEST_CASE("VGPU: Allocate does not wait for a driver that hangs", "[node][grpc]") {
  SilentNode silent(kL40sMachine, kVgpuConfig);
  silent.Start({"--resync", "1h"});
  REQUIRE(silent.Healthy(kOneB, 2));
  silent.Hang("0000:41:00.4", "nvidia/current_vgpu_type");
  const absl::Time before = MonotonicNow();
  const auto refused = silent.kubelet->Allocate(kOneB, {"0000:41:00.4"});
  CHECK(MonotonicNow() - before < absl::Seconds(20));
  CHECK_THAT(std::string(refused.status().message()),
             Catch::Contains("0000:41:00.4: unbind-stuck: its driver does not answer: reading "
                             "/sys/bus/pci/devices/0000:41:00.4/nvidia/current_vgpu_type"));
  // Of the same card, so not even asked.
  CHECK_THAT(std::string(silent.kubelet->Allocate(kOneB, {"0000:41:00.5"}).status().message()),
             Catch::Contains("0000:41:00.4/nvidia/current_vgpu_type does not return"));
  silent.Answer("0000:41:00.4");
  for (const char* unit : {"0000:41:00.4", "0000:41:00.5"}) {
    CHECK(Eventually([&] { return silent.kubelet->Allocate(kOneB, {unit}).ok(); }, kLong));
  }
}

}  // namespace
}  // namespace vfio_agent
