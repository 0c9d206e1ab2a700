// Other vendors' boards, and kernels with other nodes, from the configuration to the kubelet.
#include <fstream>
#include <sstream>

#include "absl/strings/str_format.h"
#include "test/agent/node.h"

namespace vfio_agent {
namespace {

constexpr absl::Duration kLong = absl::Seconds(30);

// Two Instincts, a ConnectX that nobody uses and two drives.
const Node::MachineText kBoard = {R"(
name: instincts
host: {iommu_active: true, iommu: amd}
devices:
- {address: "0000:0c:00.0", vendor: "1002", device: "74a1", class: "120000", driver: amdgpu, iommu_group: 10, reset_method: bus}
- {address: "0000:22:00.0", vendor: "1002", device: "74a1", class: "120000", driver: amdgpu, iommu_group: 11, reset_method: bus}
- {address: "0000:31:00.0", vendor: "15b3", device: "1021", class: "020700", iommu_group: 12}
- {address: "0000:41:00.0", vendor: "144d", device: "a80a", class: "010802", driver: nvme, iommu_group: 13}
- {address: "0000:42:00.0", vendor: "144d", device: "a80a", class: "010802", driver: nvme, iommu_group: 14}
)"};

// The fenced blocks of the guide's section with that heading.
std::vector<std::string> GuideBlocks(const std::string& heading) {
  std::ifstream guide(std::string(PACKAGING) + "/OPERATING.md");
  std::vector<std::string> blocks;
  bool inside = false, fenced = false;
  for (std::string line; std::getline(guide, line);) {
    if (!fenced && line.starts_with("#")) inside = line == "### " + heading;
    if (!inside) continue;
    if (line.starts_with("```")) {
      fenced = !fenced;
      if (fenced) blocks.emplace_back();
    } else if (fenced) {
      blocks.back() += line + "\n";
    }
  }
  return blocks;
}

// Every line of `wanted`, in this order.
void CheckHas(const std::string& text, const std::string& wanted) {
  INFO(text);
  std::istringstream lines(wanted);
  size_t at = 0;
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    at = text.find(line, at);
    REQUIRE(at != std::string::npos);
    at += line.size();
  }
}

// What `kubectl describe node` has of the extended resources.
std::string DescribeNode(const FakeResources& resources) {
  std::string capacity, allocatable;
  for (const auto& [name, resource] : resources) {
    capacity += absl::StrFormat("  %s:  %d\n", name, resource.devices.size());
    allocatable += absl::StrFormat("  %s:  %d\n", name, resource.Healthy());
  }
  return "Capacity:\n" + capacity + "Allocatable:\n" + allocatable;
}

TEST_CASE("the guide's example of another vendor leads from its row to the machine",
          "[node][grpc]") {
  const std::vector<std::string> blocks = GuideBlocks("Presets");
  REQUIRE(blocks.size() == 4);
  std::ifstream table(std::string(PACKAGING) + "/../iommu/policy/preset.cc");
  CheckHas({std::istreambuf_iterator<char>(table), {}}, blocks[0]);
  const Node node(kBoard);
  const std::string config = node.dir().Write("config.yaml", blocks[1]);
  {
    const auto kubelet = node.StartKubelet();
    const Daemon daemon(node.DaemonArguments({"--config", config}));
    INFO(daemon.Log());
    CHECK(Eventually([&] { return DescribeNode(kubelet->Resources()) == blocks[2]; }, kLong));
    CHECK(node.DriverOf("0000:0c:00.0") == "vfio-pci");
    CHECK(node.DriverOf("0000:22:00.0") == "vfio-pci");
  }
  CheckHas(node.Run({"kubevirt", "--config", config}).out, blocks[3]);
  CHECK(node.DriverOf("0000:31:00.0").empty());  // nobody asked for adapters, nor for drives
  CHECK(node.DriverOf("0000:41:00.0") == "nvme");
}

TEST_CASE("each entry's preset has its own devices, its names and its pods' variable",
          "[node][grpc]") {
  const Node node(kBoard);
  const std::string config = node.dir().Write("config.yaml", R"(
resources:
  - {preset: amd, suffix: _PT}
  - {preset: mellanox, name: mellanox.com/rail}
  - {preset: nvme, exclude: [{address: "0000:41:00.0"}]}
aliases: {"144d:a80a": PM9A3}
)");
  const auto kubelet = node.StartKubelet();
  const Daemon daemon(node.DaemonArguments({"--config", config}));
  const std::string gpu = "amd.com/AQUA_VANJARAM_INSTINCT_MI300X_PT";
  INFO(daemon.Log());
  REQUIRE(kubelet->WaitHealthy(gpu, 2, kLong));
  REQUIRE(kubelet->WaitHealthy("mellanox.com/rail", 1, kLong));
  REQUIRE(kubelet->WaitHealthy("nvme.internal/PM9A3", 1, kLong));
  CHECK(node.DriverOf("0000:41:00.0") == "nvme");
  const auto answer = kubelet->Allocate(gpu, {"0000:22:00.0"});
  REQUIRE(answer.ok());
  CHECK(answer->envs().at("PCI_RESOURCE_AMD_COM_AQUA_VANJARAM_INSTINCT_MI300X_PT") ==
        "0000:22:00.0");
}

std::vector<std::string> PathsOf(const v1beta1::ContainerAllocateResponse& answer) {
  std::vector<std::string> paths;
  for (const auto& device : answer.devices()) paths.push_back(device.host_path());
  return paths;
}

TEST_CASE("IOMMU-06: noiommu is refused unless configured, then unsafe wherever it is named",
          "[node][grpc]") {
  const Node node("cases/IOMMU-06");
  CHECK_THAT(node.Run({"plan"}).out, Catch::Contains("noiommu 0000:00:05.0"));
  const std::string config = node.dir().Write(
      "config.yaml", "resources: [{preset: nvidia, name: example.org/t4, noiommu: true}]\n");
  const auto kubelet = node.StartKubelet();
  const std::string nfd = node.dir().path() + "/features.d";
  const Daemon daemon(node.DaemonArguments({"--config", config, "--nfd-dir", nfd}));
  INFO(daemon.Log());
  REQUIRE(kubelet->WaitHealthy("example.org/t4", 1, kLong));
  CHECK_FALSE(daemon.WaitForLine({"event=warning", "code=noiommu", "0000:00:05.0", "UNSAFE"}, kLong)
                  .empty());
  const auto answer = kubelet->Allocate("example.org/t4", {"0000:00:05.0"});
  INFO(answer.status());
  REQUIRE(answer.ok());
  CHECK(PathsOf(*answer) == std::vector<std::string>{"/dev/vfio/vfio", "/dev/vfio/noiommu-0"});
  CHECK_THAT(node.Run({"plan", "--config", config}).out, Catch::Contains("UNSAFE"));
  CHECK_THAT(node.Run({"list", "resources", "--config", config, "-o", "wide"}).out,
             Catch::Contains("UNSAFE"));
  CHECK(Eventually(
      [&] {
        std::ifstream file(nfd + "/vfio-agent");
        const std::string labels((std::istreambuf_iterator<char>(file)), {});
        return labels.find("vfio-agent/passthrough.unsafe=true\n") != std::string::npos;
      },
      kLong));
  for (const char* part : {"devices", "groups"}) {
    CAPTURE(part);
    CHECK_THAT(node.Run({"list", part, "--config", config}).out, Catch::Contains("bound UNSAFE"));
    CHECK(node.RunJson({"list", part, "--config", config}).at(part)[0].at("unsafe") == true);
  }
  CHECK(node.RunJson({"list", "resources", "--config", config})
            .at("resources")[0]
            .at("units")[0]
            .at("unsafe") == true);
  CHECK_THAT(node.Run({"topology", "--config", config}).out, Catch::Contains("bound UNSAFE"));
  CHECK_THAT(node.Run({"explain", "group:0", "--config", config}).out, Catch::Contains("UNSAFE"));
  CHECK_THAT(node.Run({"explain", "group:0", "--config", config}).out,
             Catch::Contains("fuser -v /dev/vfio/noiommu-0"));
  CHECK_THAT(node.Run({"status", "-o", "wide"}).out, Catch::Contains("UNSAFE"));
  CHECK_FALSE(
      daemon.WaitForLine({"level=warn", "event=iommu_off", "UNSAFE: served"}, kLong).empty());
  CHECK_THAT(node.Run({"kubevirt", "--config", config}).out,
             Catch::Contains("UNSAFE, served to containers only: QEMU, and so KubeVirt, cannot") &&
                 !Catch::Contains("deviceName"));
  const nlohmann::json doctor = node.RunJson({"doctor", "--config", config});
  for (const auto& check : doctor.at("checks")) {
    CAPTURE(check.dump());
    if (check.at("code") != "noiommu" && check.at("code") != "iommu-off") continue;
    CHECK(check.at("state") == "warn");
  }
}

// vfio without its groups: VFIO_GROUP=n.
const Node::MachineText kIommufdOnly = {R"(
name: iommufd-only
host: {iommu_active: true, iommu: intel, cdevs: full}
absent: [dev/vfio/vfio, dev/vfio/20]
devices:
- {address: "0000:01:00.0", vendor: "10de", device: "2330", class: "030200", driver: vfio-pci, iommu_group: 20}
)"};

TEST_CASE("a kernel with iommufd alone offers nothing, and names the key", "[node][grpc]") {
  const Node node(kIommufdOnly);
  const Daemon daemon(node.DaemonArguments());
  const std::string line =
      daemon.WaitForLine({"event=unit_unhealthy", "node-missing", "0000:01:00.0"}, kLong);
  INFO(daemon.Log());
  CHECK_THAT(line, Catch::Contains("kubelet.iommufd"));
}

TEST_CASE("a kernel with iommufd alone is served by cdevs and /dev/iommu where configured",
          "[node][grpc]") {
  const Node node(kIommufdOnly);
  const auto kubelet = node.StartKubelet();
  const Daemon daemon(node.DaemonArguments({"--iommufd", "true"}));
  INFO(daemon.Log());
  REQUIRE(kubelet->WaitHealthy(kH100, 1, kLong));
  const auto answer = kubelet->Allocate(kH100, {"0000:01:00.0"});
  INFO(answer.status());
  REQUIRE(answer.ok());
  CHECK(PathsOf(*answer) == std::vector<std::string>{"/dev/vfio/devices/vfio0", "/dev/iommu"});
}

TEST_CASE("NUMA-02: a GPU that is a NUMA node without processors is near those that are asked for",
          "[node][grpc]") {
  const Node node("cases/NUMA-02");
  const std::string numa = GENERATE("true", "nearest");
  CAPTURE(numa);
  const std::string config = node.dir().Write(
      "config.yaml",
      "resources: [{preset: nvidia, name: example.org/gb200, numa: " + numa + "}]\n");
  const auto kubelet = node.StartKubelet();
  const Daemon daemon(node.DaemonArguments({"--config", config}));
  INFO(daemon.Log());
  REQUIRE(kubelet->WaitHealthy("example.org/gb200", 1, kLong));
  CHECK(kubelet->Resources().at("example.org/gb200").devices.at("0008:01:00.0").numa ==
        std::vector<int64_t>{numa == "true" ? 2 : 0});
}

TEST_CASE(
    "ADDR-04: below a host bridge that is a platform device nothing is selected, and a drive "
    "that is named has its path",
    "[node]") {
  const Node node("cases/ADDR-04");
  const nlohmann::json plan = node.RunJson({"plan"});
  CHECK(plan.at("groups").empty());
  CHECK(plan.at("resources").empty());
  const std::string config = node.dir().Write("config.yaml", "resources: [{preset: nvme}]\n");
  CHECK(node.RunJson({"plan", "--config", config}).at("groups").at(0).at("verdict") == "bind");
  CHECK_THAT(node.Run({"explain", "0004:01:00.0", "--config", config}).out,
             Catch::Contains("0004:00:00.0") && Catch::Contains("pci0004:00"));
  CHECK(node.Writes().empty());
}

TEST_CASE("ADDR-02: a drive behind VMD is refused for its address, and the others are served",
          "[node]") {
  const Node node("cases/ADDR-02");
  const std::string config =
      node.dir().Write("config.yaml", "resources: [{preset: nvidia}, {preset: nvme}]\n");
  const ProgramResult result = node.Run({"bind", "--config", config});
  CHECK(result.exit_code == 3);
  CHECK_THAT(result.out, Catch::Contains("address-too-wide 10001:8a:00.0"));
  CHECK(node.DriverOf("0000:01:00.0") == "vfio-pci");
  CHECK(node.DriverOf("10001:8a:00.0") == "nvme");
}

}  // namespace
}  // namespace vfio_agent
