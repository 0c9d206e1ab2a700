// A card that is whole in one mode, cut in the next, and a container's in the third.
#include <csignal>

#include "iommu/mdev/mdev.h"
#include "test/agent/node.h"
#include "test/agent/vgpu_machines.h"

namespace vfio_agent {
namespace {

constexpr absl::Duration kLong = absl::Seconds(90);
constexpr char kCard[] = "0000:3b:00.0";
constexpr char kWhole[] = "nvidia.com/TU104GL_TESLA_T4";
constexpr char kCut[] = "nvidia.com/GRID_T4-1Q";

TEST_CASE("VGPU: a card that is whole in vm-passthrough is cut in vm-vgpu and whole for containers",
          "[mode]") {
  const Node node(Node::MachineText{std::string(kT4Host) + kT4Devices});
  const auto kubelet = node.StartKubelet();
  const std::string config = node.dir().Write("config.yaml", "mode: vm-passthrough\n");
  const Daemon daemon(node.DaemonArguments({"--config", config}));
  const auto change = [&](const std::string& text) {
    node.dir().Write("config.yaml", text);
    daemon.Signal(SIGHUP);
  };
  const auto has = [&](int index) {
    const std::string uuid = MdevUuid(*PciAddress::Parse(kCard), "nvidia-222", index);
    return std::filesystem::exists(node.root() + "/sys/bus/mdev/devices/" + uuid);
  };
  REQUIRE(kubelet->WaitHealthy(kWhole, 1, kLong));
  change("mode: vm-vgpu\nmdev: [{parent: [{vendor: \"10de\"}], types: {GRID T4-1Q: 2}}]\n");
  INFO(daemon.Log());
  REQUIRE(kubelet->WaitHealthy(kCut, 2, kLong));
  CHECK(node.DriverOf(kCard) == "nvidia");
  CHECK(kubelet->Resources().at(kWhole).Healthy() == 0);
  CHECK_FALSE(daemon.WaitForLine({"event=mode_ready", "mode=vm-vgpu"}, kLong).empty());
  change("mode: container\n");
  CHECK_FALSE(daemon.WaitForLine({"event=mode_ready", "mode=container"}, kLong).empty());
  CHECK_FALSE(has(0));
  CHECK_FALSE(has(1));
  CHECK(node.DriverOf(kCard) == "nvidia");
}

}  // namespace
}  // namespace vfio_agent
