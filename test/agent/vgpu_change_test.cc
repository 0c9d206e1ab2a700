// SR-IOV vGPUs on a simulated node whose configuration asks for fewer, for others, or for none.
#include <csignal>

#include "test/agent/vgpu_node.h"

namespace vfio_agent {
namespace {

constexpr char kOneQ[] = "nvidia.com/NVIDIA_L40S-3Q";
constexpr char kOther[] = R"(mode: vm-vgpu
vgpu: [{parent: [{vendor: "10de"}], types: {NVIDIA L40S-3Q: 1}}]
)";
constexpr char kNone[] = "mode: vm-vgpu\n";

std::string Wanting(int count) {
  return "mode: vm-vgpu\nvgpu: [{parent: [{vendor: \"10de\"}], types: {NVIDIA L40S-1B: " +
         std::to_string(count) + "}}]\n";
}

bool WaitType(const VgpuNode& vgpu, const std::string& vf, const std::string& type) {
  return Eventually([&] { return vgpu.Type(vf) == type; }, kLong);
}

TEST_CASE("VGPU: a lower count takes types away, and of what a pod has when that ends",
          "[node][grpc]") {
  VgpuNode vgpu;
  vgpu.Start(Wanting(3));
  REQUIRE(vgpu.Healthy(3));
  vgpu.kubelet->SetPod("team", "vm", "compute", kOneB, {kThird});
  vgpu.Config(Wanting(1));
  CHECK(WaitType(vgpu, kFirst, "0"));
  CHECK(WaitType(vgpu, kSecond, "0"));
  CHECK(vgpu.Healthy(1));
  CHECK(vgpu.Type(kThird) == "1145");
  CHECK_FALSE(
      vgpu.daemon
          ->WaitForLine({"event=release_started", "members=0000:41:00.4", "vgpu_type=0"}, kLong)
          .empty());
  CHECK_FALSE(vgpu.daemon->WaitForLine({"event=released", "members=0000:41:00.4"}, kLong).empty());
  vgpu.Config(Wanting(0));
  CHECK_FALSE(
      vgpu.daemon->WaitForLine({"in use by pod team/vm", "more than vgpu[].types"}, kLong).empty());
  CHECK(vgpu.Healthy(0));
  CHECK(vgpu.Type(kThird) == "1145");
  REQUIRE(vgpu.kubelet->RemovePod("team", "vm"));
  CHECK(WaitType(vgpu, kThird, "0"));
}

TEST_CASE(
    "VGPU: an agent that is killed between one type and another is followed by one that "
    "goes on",
    "[node][grpc]") {
  VgpuNode vgpu;
  vgpu.Start();
  REQUIRE(vgpu.Healthy(2));
  vgpu.Kill();
  vgpu.node.Control("fault {device: '0000:41:00.5', op: vgpu, block: forever}");
  vgpu.Start(kOther);
  REQUIRE_FALSE(
      vgpu.daemon->WaitForLine({"event=release_started", "members=0000:41:00.5"}, kLong).empty());
  REQUIRE(WaitType(vgpu, kFirst, "0"));
  CHECK(vgpu.Type(kSecond) == "1145");
  vgpu.Kill();
  vgpu.node.Control("clear-faults");
  vgpu.node.Control("release-blocked 0000:41:00.5");
  vgpu.Start(kOther);
  REQUIRE(vgpu.kubelet->WaitHealthy(kOneQ, 1, kLong));
  CHECK(vgpu.Type(kFirst) == "1153");
  CHECK(vgpu.Type(kSecond) == "0");
  CHECK(vgpu.Type(kThird) == "0");
}

TEST_CASE("VGPU: bind changes one type for another in one go, as plan and explain foretell",
          "[node]") {
  VgpuNode vgpu;
  REQUIRE(vgpu.Bind().exit_code == 0);
  const std::string config = vgpu.Config(kOther);
  const ProgramResult plan = vgpu.node.Run({"plan", "--config", config});
  CHECK_THAT(plan.out, Catch::Contains("its vGPU type, more than vgpu[].types asks for") &&
                           Catch::Contains("echo 0 > /sys/bus/pci/devices/0000:41:00.4/nvidia") &&
                           Catch::Contains("wait until others have been taken away"));
  CHECK_THAT(vgpu.node.Run({"explain", kFirst, "--config", config}).out,
             Catch::Contains("would take its vGPU type away"));
  const ProgramResult bound = vgpu.Bind(kOther);
  INFO(bound.out);
  CHECK(bound.exit_code == 0);
  CHECK_THAT(bound.out,
             Catch::Contains("vGPU type taken away") && Catch::Contains("vGPU type set"));
  CHECK(vgpu.Type(kFirst) == "1153");
  CHECK(vgpu.Type(kSecond) == "0");
}

TEST_CASE("VGPU: guests that keep a card from another type are named, and it is set after them",
          "[node][grpc]") {
  VgpuNode vgpu;
  REQUIRE(vgpu.Bind().exit_code == 0);
  vgpu.kubelet->SetPod("team", "vm", "compute", kOneB, {kFirst});
  vgpu.Start(kOther);
  REQUIRE_FALSE(vgpu.daemon
                    ->WaitForLine({"code=held", "it has 1 of NVIDIA L40S-1B (1145)",
                                   "0000:41:00.4 is in use by pod team/vm"},
                                  kLong)
                    .empty());
  CHECK(vgpu.Type(kFirst) == "1145");
  REQUIRE(vgpu.kubelet->RemovePod("team", "vm"));
  vgpu.daemon->Signal(SIGHUP);
  CHECK(vgpu.kubelet->WaitHealthy(kOneQ, 1, kLong));
}

TEST_CASE("VGPU: an entry that is gone leaves the types until release, which plan names",
          "[node][grpc]") {
  VgpuNode vgpu;
  vgpu.Start();
  REQUIRE(vgpu.Healthy(2));
  const std::string config = vgpu.Config(kNone);
  REQUIRE(vgpu.Healthy(0));
  CHECK_FALSE(vgpu.daemon->WaitForLine({"vfio-agent release 0000:41:00.4"}, kLong).empty());
  for (const char* command : {"plan", "explain"}) {
    std::vector<std::string> line = {command, "--config", config};
    if (line[0] == "explain") line.insert(line.begin() + 1, kFirst);
    CHECK_THAT(vgpu.node.Run(line).out, Catch::Contains("vfio-agent release 0000:41:00.4"));
  }
  CHECK(vgpu.Type(kFirst) == "1145");
  CHECK(vgpu.node
            .Run({"release", kFirst, "--config", config, "--device-plugin-dir",
                  vgpu.node.kubelet_dir(), "--kubelet-root-dir", vgpu.node.kubelet_root()})
            .exit_code == 0);
  CHECK(vgpu.Type(kFirst) == "0");
}

}  // namespace
}  // namespace vfio_agent
