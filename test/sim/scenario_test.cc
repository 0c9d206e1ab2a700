#include "test/sim/scenario.h"

#include <cerrno>

#include "test/sim/kernel_fixture.h"

namespace vfio_agent::sim {
namespace {

std::unique_ptr<Kernel> MakeKernelWith(const std::string& scenario_yaml) {
  auto machine = ParseMachine(kSmallNode, "test");
  REQUIRE(machine.ok());
  const auto scenario = ParseScenario(scenario_yaml);
  INFO(scenario.status().ToString());
  REQUIRE(scenario.ok());
  ApplyScenario(*scenario, *machine);
  return std::make_unique<Kernel>(*std::move(machine));
}

TEST_CASE("a fault answers with its errno as often as it says and nothing is done", "[sim]") {
  const auto kernel = MakeKernelWith(R"(
faults:
- {device: "0000:01:00.0", op: unbind, errno: EBUSY, count: 2}
- {device: "0000:01:00.0", op: override, errno: EPERM, once: true}
)");
  CHECK(Unbind(*kernel, kCard) == EBUSY);
  CHECK(Unbind(*kernel, kCard) == EBUSY);
  CHECK(DriverOf(*kernel, kCard) == "e1000e");
  CHECK(Override(*kernel, kCard, "vfio-pci") == EPERM);
  CHECK(Override(*kernel, kCard, "vfio-pci") == 0);
  CHECK(Unbind(*kernel, kCard) == 0);
}

TEST_CASE("a probe fault is silent through drivers_probe and told by bind", "[sim]") {
  const auto kernel = MakeKernelWith("faults: [{device: '0000:01:00.0', op: probe, errno: EIO}]\n");
  REQUIRE(Override(*kernel, kCard, "vfio-pci") == 0);
  REQUIRE(Unbind(*kernel, kCard) == 0);
  CHECK(Probe(*kernel, kCard) == 0);
  CHECK(DriverOf(*kernel, kCard).empty());
  CHECK(kernel->Write("sys/bus/pci/drivers/vfio-pci/bind", kCard) == EIO);
  REQUIRE(kernel->Control("clear-faults") == 0);
  CHECK(Probe(*kernel, kCard) == 0);
  CHECK(DriverOf(*kernel, kCard) == "vfio-pci");
}

TEST_CASE("a fault of the write to drivers_probe is told", "[sim]") {
  const auto kernel =
      MakeKernelWith("faults: [{device: '*', op: drivers_probe, errno: EIO, once: true}]\n");
  CHECK(Probe(*kernel, kCard) == EIO);
  CHECK(Probe(*kernel, kCard) == 0);
}

TEST_CASE("another driver may be faster than vfio-pci", "[sim]") {
  const auto kernel = MakeKernelWith(
      "faults: [{device: '0000:01:00.0', op: unbind, taken_by: nouveau, once: true}]\n");
  REQUIRE(Override(*kernel, kCard, "vfio-pci") == 0);
  CHECK(Unbind(*kernel, kCard) == 0);
  CHECK(DriverOf(*kernel, kCard) == "nouveau");
  CHECK(Probe(*kernel, kCard) == 0);
  CHECK(DriverOf(*kernel, kCard) == "nouveau");
}

TEST_CASE("a device may vanish while it is being unbound", "[sim]") {
  const auto kernel =
      MakeKernelWith("faults: [{device: '0000:01:00.0', op: unbind, vanish: true}]\n");
  CHECK(Unbind(*kernel, kCard) == ENODEV);
  CHECK_FALSE(kernel->Exists(DevicePath(kCard)));
  CHECK_FALSE(kernel->Exists("sys/kernel/iommu_groups/14"));
}

TEST_CASE("a fault may hit the reading of one attribute of one device", "[sim]") {
  const auto kernel =
      MakeKernelWith("faults: [{device: '0000:01:00.0', op: 'read:numa_node', errno: EIO}]\n");
  CHECK(kernel->Read(DevicePath(kCard) + "/numa_node").error == EIO);
  CHECK(kernel->Read(DevicePath(kFirst) + "/numa_node").error == 0);
  CHECK(kernel->Read(DevicePath(kCard) + "/vendor").error == 0);
}

TEST_CASE("a scenario adds processes, files and drivers and takes paths away", "[sim]") {
  const auto kernel = MakeKernelWith(R"(
vfio_pci: missing
drivers: [nvidia]
processes: [{pid: 42, comm: nvidia-persiste, fds: [/dev/nvidia0]}]
files: {proc/cmdline: "quiet\n"}
absent: [sys/bus/pci/devices/0000:02:00.1]
)");
  CHECK_FALSE(kernel->Exists("sys/bus/pci/drivers/vfio-pci"));
  CHECK(ReadText(*kernel, "lib/modules/6.1.0-44-amd64/modules.dep").find("vfio") ==
        std::string::npos);
  CHECK(kernel->Exists("sys/bus/pci/drivers/nvidia/bind"));
  CHECK(kernel->ReadLink("proc/42/fd/3").text == "/dev/nvidia0");
  CHECK(ReadText(*kernel, "proc/cmdline") == "quiet\n");
  CHECK_FALSE(kernel->Exists(DevicePath(kSecond)));
}

TEST_CASE("a misspelt key, operation, errno or duration is refused with its line", "[sim]") {
  for (const char* text :
       {"faults:\n- {device: '*', op: unbind, errno: EBUZY}\n",
        "faults:\n- {device: '*', op: eat}\n", "faults:\n- {device: '*', op: unbind, block: 5m}\n",
        "faults:\n- {device: '*', op: unbind, blok: forever}\n", "notes: []\nfualts: []\n"}) {
    INFO(text);
    const auto scenario = ParseScenario(text);
    REQUIRE_FALSE(scenario.ok());
    CHECK(std::string(scenario.status().message()).find("line 2") != std::string::npos);
  }
}

TEST_CASE("the log tells every write with its answer in order", "[sim]") {
  const auto kernel = MakeKernel(kSmallNode);
  Override(*kernel, kCard, "vfio-pci\n");
  Probe(*kernel, "0000:99:00.0");
  CHECK(kernel->Log() ==
        "1 sys/devices/pci0000:00/0000:00:02.0/0000:01:00.0/driver_override=vfio-pci\\n ok\n"
        "2 sys/bus/pci/drivers_probe=0000:99:00.0 ENODEV\n");
}

TEST_CASE("the control file refuses what it does not understand", "[sim]") {
  const auto kernel = MakeKernel(kSmallNode);
  for (const char* command : {"", "dance", "hold", "fault {device: 1}", "vfs", "rebind"}) {
    INFO(command);
    CHECK(kernel->Control(command) == EINVAL);
  }
  CHECK(kernel->Control("remove 0000:99:00.0") == ENODEV);
  CHECK(kernel->Control("hold 99 1 x") == ENOENT);
}

TEST_CASE("rebind moves a device behind the agent's back", "[sim]") {
  const auto kernel = MakeKernel(kSmallNode);
  MoveToVfio(*kernel, kCard);
  REQUIRE(kernel->Control("rebind 0000:01:00.0 nvidia") == 0);
  CHECK(DriverOf(*kernel, kCard) == "nvidia");
  CHECK_FALSE(kernel->Exists("dev/vfio/14"));
}

}  // namespace
}  // namespace vfio_agent::sim
