// What is said of mediated devices, by which names they are known, and nodes of their own.
#include <fstream>
#include <thread>

#include "iommu/mdev/mdev.h"
#include "test/agent/node.h"
#include "test/agent/vgpu_machines.h"

namespace vfio_agent {
namespace {

constexpr absl::Duration kLong = absl::Seconds(60);
constexpr char kQ1[] = "nvidia.com/GRID_T4-1Q";
constexpr char kT4[] = "0000:3b:00.0";

std::string Ours(int index) { return MdevUuid(*PciAddress::Parse(kT4), "nvidia-222", index); }

struct WordsNode {
  explicit WordsNode(const std::string& host = kT4Host)
      : node(Node::MachineText{host + kT4Devices}) {}

  ProgramResult Run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--config", config});
    return node.Run(std::move(arguments));
  }
  nlohmann::json RunJson(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--config", config});
    return node.RunJson(std::move(arguments));
  }
  std::string Config(const std::string& types, const std::string& more = "") const {
    return node.dir().Write(
        "config.yaml",
        "mode: vm-vgpu\nmdev: [{parent: [{vendor: '10de'}], types: {" + types + "}}]\n" + more);
  }
  std::string GroupOf(const std::string& uuid) const {
    return std::filesystem::read_symlink(node.root() + "/sys/bus/mdev/devices/" + uuid +
                                         "/iommu_group")
        .filename()
        .string();
  }
  bool Has(const std::string& uuid) const {
    return std::filesystem::exists(node.root() + "/sys/bus/mdev/devices/" + uuid);
  }

  Node node;
  std::string config = Config("GRID T4-1Q: 2");
};

TEST_CASE("VGPU: bind says that mediated devices are made, and tells each time what has no room",
          "[node]") {
  WordsNode vgpu;
  CHECK_THAT(vgpu.Run({"bind"}).out, Catch::Contains("group 5: mediated devices made " +
                                                     std::string(kQ1) + ": 0000:3b:00.0"));
  CHECK_THAT(vgpu.Run({"bind"}).out, Catch::Contains("group 5: no mediated devices to make"));
  vgpu.config = vgpu.Config("GRID T4-1Q: 5");
  CHECK_THAT(vgpu.Run({"bind"}).err, Catch::Contains("1 more of type GRID T4-1Q (nvidia-222)"));
  CHECK_THAT(vgpu.Run({"bind"}).err, Catch::Contains("1 more of type GRID T4-1Q (nvidia-222)"));
}

TEST_CASE("VGPU: bind refuses a parent without the wanted type, though it is no resource",
          "[node]") {
  WordsNode vgpu;
  vgpu.config = vgpu.Config("GRID V100-1Q: 1");
  const ProgramResult refused = vgpu.Run({"bind"});
  CHECK(refused.exit_code == 3);
  CHECK_THAT(refused.out, Catch::Contains("vfio-driver-missing") &&
                              Catch::Contains("0000:3b:00.0 has: GRID T4-1Q"));
}

TEST_CASE("VGPU: an instance is known by its uuid and by its group", "[node]") {
  const WordsNode vgpu;
  CHECK(vgpu.RunJson({"plan"})["actions"][0]["address"] == kT4);
  REQUIRE(vgpu.Run({"bind"}).exit_code == 0);
  const std::string group = vgpu.GroupOf(Ours(0));
  for (const std::string& selector : {Ours(0), "group:" + group}) {
    CAPTURE(selector);
    const ProgramResult told = vgpu.Run({"explain", selector});
    CHECK(told.exit_code == 0);
    CHECK_THAT(told.out, Catch::Contains(Ours(0) + "  group " + group +
                                         "  type nvidia-222  made by vfio-agent  " +
                                         std::string(kQ1) + ", ready") &&
                             Catch::Contains("fuser -v /dev/vfio/" + group) &&
                             !Catch::Contains("fuser -v /dev/vfio/5\n"));
  }
  const auto document = vgpu.RunJson({"explain", kT4});
  CHECK(document["groups"][0]["mediated_devices"][1]["uuid"] == Ours(1));
  CHECK(document["groups"][0]["mediated_devices"][1]["own"] == true);
}

TEST_CASE("VGPU: release by uuid or group removes that instance alone", "[node]") {
  const WordsNode vgpu;
  REQUIRE(vgpu.Run({"bind"}).exit_code == 0);
  CHECK(vgpu.Run({"release", Ours(1)}).exit_code == 0);
  CHECK(vgpu.Has(Ours(0)));
  CHECK_FALSE(vgpu.Has(Ours(1)));
  CHECK(vgpu.Run({"release", "group:" + vgpu.GroupOf(Ours(0))}).exit_code == 0);
  CHECK_FALSE(vgpu.Has(Ours(0)));
}

TEST_CASE("VGPU: what is ours is removed after mdev has left the configuration, as the plan says",
          "[node]") {
  WordsNode vgpu;
  REQUIRE(vgpu.Run({"bind"}).exit_code == 0);
  vgpu.config = vgpu.node.dir().Write("config.yaml", "mode: vm-passthrough\n");
  CHECK_THAT(vgpu.Run({"plan"}).out,
             Catch::Contains("held 0000:3b:00.0") && !Catch::Contains("foreign-manager") &&
                 Catch::Contains("remedy: vfio-agent release 0000:3b:00.0"));
  CHECK(vgpu.Run({"release", kT4}).exit_code == 0);
  CHECK_FALSE(vgpu.Has(Ours(0)));
  CHECK_THAT(vgpu.Run({"plan"}).out, !Catch::Contains("held 0000:3b:00.0"));
}

TEST_CASE("VGPU: a parent is no function that is still to be bound", "[node][grpc]") {
  const WordsNode vgpu;
  const auto kubelet = vgpu.node.StartKubelet();
  const Daemon daemon(vgpu.node.DaemonArguments({"--config", vgpu.config}));
  REQUIRE(kubelet->WaitHealthy(kQ1, 2, kLong));
  CHECK_THAT(vgpu.Run({"doctor"}).out, !Catch::Contains("until they are bound"));
  const auto status = vgpu.RunJson({"status"});
  CHECK(status["resources"][0]["units"][0]["mdev_type"] == "nvidia-222");
  CHECK(status["resources"][0]["units"][0]["parent"] == kT4);
}

TEST_CASE("VGPU: where the kernel has nodes of devices alone, these are given", "[node][grpc]") {
  WordsNode vgpu(
      "name: vgpu\nhost: {iommu_active: true, iommu: intel, cdevs: full}\n"
      "absent: [dev/vfio/vfio]");
  vgpu.node.Control("fault {device: '0000:3b:00.0', op: node}");
  vgpu.config = vgpu.Config("GRID T4-1Q: 2", "kubelet: {iommufd: true}\n");
  const auto kubelet = vgpu.node.StartKubelet();
  const Daemon daemon(vgpu.node.DaemonArguments({"--config", vgpu.config}));
  INFO(daemon.Log());
  REQUIRE(kubelet->WaitHealthy(kQ1, 2, kLong));
  const auto answer = kubelet->Allocate(kQ1, {Ours(0)});
  INFO(answer.status());
  REQUIRE(answer.ok());
  std::vector<std::string> nodes;
  for (const auto& device : answer->devices()) nodes.push_back(device.host_path());
  CHECK(nodes == std::vector<std::string>{"/dev/vfio/devices/vfio0", "/dev/iommu"});
}

TEST_CASE("VGPU: an instance whose removal waits is told when it cannot be made again", "[node]") {
  const WordsNode vgpu;
  REQUIRE(vgpu.Run({"bind"}).exit_code == 0);
  vgpu.node.Control("hold " + vgpu.GroupOf(Ours(0)) + " 4242 qemu-kvm");
  const std::string group = vgpu.GroupOf(Ours(0));
  std::thread removal([&] {
    std::ofstream(vgpu.node.root() + "/sys/bus/mdev/devices/" + Ours(0) + "/remove") << "1";
  });
  CHECK(Eventually([&] { return !vgpu.Has(Ours(0)); }, kLong));
  CHECK_THAT(vgpu.Run({"bind"}).out,
             Catch::Contains("probe-refused") && Catch::Contains(Ours(0) + " is being removed"));
  vgpu.node.Control("free " + group);
  removal.join();
  CHECK(vgpu.Run({"bind"}).exit_code == 0);
  CHECK(vgpu.Has(Ours(0)));
}

}  // namespace
}  // namespace vfio_agent
