// Mediated devices and vGPUs by claims, on simulated nodes.
#include <fstream>

#include "iommu/mdev/mdev.h"
#include "test/agent/dra_node.h"
#include "test/agent/vgpu_machines.h"

namespace vfio_agent {
namespace {

using Catch::Contains;
using nlohmann::json;
constexpr absl::Duration kLong = DraNode::kLong;
constexpr char kT4[] = "0000:3b:00.0";
constexpr char kMdevs[] =
    "mdev: [{parent: [{vendor: \"10de\"}], types: {GRID T4-1Q: 2}, serve: dra}]\n";
constexpr char kVgpus[] =
    "vgpu: [{parent: [{vendor: \"10de\"}], types: {NVIDIA L40S-1B: 2}, serve: dra}]\n";

json ReadJson(const std::string& path) {
  std::ifstream file(path);
  INFO(path);
  REQUIRE(file.is_open());
  return json::parse(file);
}

// What a virt-launcher reads of the claim's device.
json AttributesIn(const DraNode& dra) {
  const json metadata =
      ReadJson(dra.node.kubelet_root() + "/plugins/vfio-agent/dra-device-metadata/" +
               dra.claim.uid + "/gpu/metadata.json");
  return metadata.at("requests").at(0).at("devices").at(0).at("attributes");
}

json NodesIn(const DraNode& dra) {
  const json spec =
      ReadJson(dra.node.dir().path() + "/cdi/dra-claim_vfio-agent_" + dra.claim.uid + ".json");
  return spec.at("devices").at(0).at("containerEdits").at("deviceNodes");
}

// A claim's whole life, with a kill and a mode that gives vGPUs back between.
void LiveOf(const std::string& config, const DraNode& dra, const std::string& unit,
            const std::string& group, const std::string& function) {
  auto daemon = dra.Start();
  REQUIRE(dra.WaitDevices(2));
  REQUIRE(dra.Prepare() == "");
  CHECK(dra.StateOf(unit) == "held");
  CHECK(dra.kubelet->Resources().empty());
  const json nodes = NodesIn(dra);
  REQUIRE(nodes.size() == 2);
  CHECK(nodes[0].at("path") == "/dev/vfio/vfio");
  CHECK(nodes[1].at("path") == "/dev/vfio/" + group);
  daemon->Signal(SIGKILL);
  daemon->WaitForEnd(kLong);
  dra.node.dir().Write("config.yaml", "mode: container\n" + config);
  const ProgramResult release = dra.node.Run({"release", unit, "--config", dra.config});
  CHECK(release.exit_code == 3);
  CHECK_THAT(release.out + release.err, Contains("ResourceClaim team/vm-gpu"));
  CHECK_THAT(dra.node.Run({"explain", function, "--config", dra.config}).out,
             Contains("held by ResourceClaim team/vm-gpu"));
  daemon = dra.Start();
  INFO(daemon->Log());
  CHECK_FALSE(
      daemon->WaitForLine({"event=mode_switching", "waits for", "ResourceClaim team/vm-gpu"}, kLong)
          .empty());
  CHECK(dra.Prepare() == "");
  CHECK(dra.Unprepare() == "");
  CHECK_FALSE(daemon->WaitForLine({"event=mode_ready", "mode=container"}, kLong).empty());
}

TEST_CASE("VGPU: a claim gets a mediated device by its uuid, and nobody removes it meanwhile",
          "[dra][node][grpc]") {
  const std::string uuid = MdevUuid(*PciAddress::Parse(kT4), "nvidia-222", 0);
  const DraNode dra(kMdevs, std::string(kT4Host) + kT4Devices, uuid);
  const auto path = dra.node.root() + "/sys/bus/mdev/devices/" + uuid;
  {
    const auto daemon = dra.Start();
    REQUIRE(dra.WaitDevices(2));
  }
  const std::string group = std::filesystem::read_symlink(path + "/iommu_group").filename();
  LiveOf(kMdevs, dra, uuid, group, kT4);
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("VGPU: a virt-launcher is told the uuid of a claim's mediated device",
          "[dra][node][grpc]") {
  const std::string uuid = MdevUuid(*PciAddress::Parse(kT4), "nvidia-222", 0);
  const DraNode dra(kMdevs, std::string(kT4Host) + kT4Devices, uuid);
  const auto daemon = dra.Start();
  INFO(daemon->Log());
  REQUIRE(dra.WaitDevices(2));
  REQUIRE(dra.Prepare() == "");
  const json attributes = AttributesIn(dra);
  CHECK(attributes.at("mdevUUID") == json({{"string", uuid}}));
  CHECK(attributes.at("type") == json({{"string", "GRID T4-1Q"}}));
  CHECK_FALSE(attributes.contains("resource.kubernetes.io/pciBusID"));
  const json slices = dra.api.List(DraNode::kSlices);
  CHECK(slices.at(0).at("spec").at("devices").at(0).at("attributes").at("type").at("string") ==
        "GRID T4-1Q");
}

TEST_CASE("VGPU: a claim gets a virtual function with its type, which stays set meanwhile",
          "[dra][node][grpc]") {
  const DraNode dra(kVgpus, kL40sMachine, "0000-41-00-4");
  const std::string vf = dra.node.root() + "/sys/bus/pci/devices/0000:41:00.4";
  const std::string group = std::filesystem::read_symlink(vf + "/iommu_group").filename();
  const auto type = [&vf] {
    std::string text;
    std::ifstream(vf + "/nvidia/current_vgpu_type") >> text;
    return text;
  };
  {
    const auto daemon = dra.Start();
    REQUIRE(dra.WaitDevices(2));
    REQUIRE(dra.Prepare() == "");
    CHECK(AttributesIn(dra).at("resource.kubernetes.io/pciBusID").at("string") == "0000:41:00.4");
    CHECK(AttributesIn(dra).at("type").at("string") == "NVIDIA L40S-1B");
    CHECK(type() == "1145");
  }
  LiveOf(kVgpus, dra, "0000:41:00.4", group, "0000:41:00.4");
  CHECK(type() == "0");
}

}  // namespace
}  // namespace vfio_agent
