#include "test/sim/machine.h"

#include <algorithm>
#include <filesystem>

#include "test/sim/dump.h"
#include "test/sim/kernel_fixture.h"

namespace vfio_agent::sim {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> MachineFiles() {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(MACHINES)) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string GroupOf(Kernel& kernel, const std::string& address) {
  const std::string target = kernel.ReadLink(DevicePath(address) + "/iommu_group").text;
  return target.substr(target.rfind('/') + 1);
}

TEST_CASE("every machine file makes a node with the devices that it lists", "[sim]") {
  const std::vector<std::string> files = MachineFiles();
  REQUIRE(files.size() >= 24 + 38);
  for (const std::string& file : files) {
    INFO(file);
    const auto machine = LoadMachine(file);
    INFO(machine.status().ToString());
    REQUIRE(machine.ok());
    Kernel kernel(*machine);
    for (const MachineDevice& device : machine->devices) {
      INFO(device.address);
      REQUIRE(kernel.Exists(DevicePath(device.address) + "/vendor") == device.present);
      if (!device.present) continue;
      CHECK(DriverOf(kernel, device.address) == device.driver);
      CHECK(GroupOf(kernel, device.address) == (device.group ? std::to_string(*device.group) : ""));
      CHECK(ReadText(kernel, DevicePath(device.address) + "/config").size() >= 1);
    }
  }
}

TEST_CASE("the eight-GPU node has each GPU alone in a group below ports with ACS", "[sim]") {
  const auto machine = LoadMachine(std::string(MACHINES) + "/hgx-8gpu.yaml");
  REQUIRE(machine.ok());
  Kernel kernel(*machine);
  int gpus = 0;
  for (const MachineDevice& device : machine->devices) {
    if (device.is_bridge && !device.pci_bridge) CHECK(device.acs_control == 0x1d);
    if (device.device != 0x2330) continue;
    ++gpus;
    CHECK(kernel.List("sys/kernel/iommu_groups/" + GroupOf(kernel, device.address) + "/devices") ==
          std::vector<std::string>{device.address});
  }
  CHECK(gpus == 8);
  CHECK(kernel.Exists("sys/class/iommu/dmar0/devices/0000:1b:00.0"));
  CHECK(ReadText(kernel, "sys/devices/system/node/node1/distance") == "21 10\n");
  CHECK(ReadText(kernel, "sys/block/nvme0n1/size") == "3750748848\n");
}

TEST_CASE("a device's directory lies below its bridges and is linked from the bus", "[sim]") {
  const auto kernel = MakeKernel(kSmallNode);
  CHECK(kernel->ReadLink(DevicePath(kCard)).text ==
        "../../../devices/pci0000:00/0000:00:02.0/0000:01:00.0");
  CHECK(kernel->ReadLink(DevicePath(kCard) + "/iommu_group").text ==
        "../../../../kernel/iommu_groups/14");
  CHECK(kernel->ReadLink(DevicePath(kCard) + "/driver").text ==
        "../../../../bus/pci/drivers/e1000e");
}

TEST_CASE("a path that the machine file gives wins over the parents", "[sim]") {
  const auto kernel = MakeKernel(R"(
devices:
- {address: "0001:01:00.0", vendor: "10de", device: "1c82", class: "030000", sysfs_path: "/sys/devices/platform/axi/pci0001:00/0001:01:00.0"}
)");
  CHECK(kernel->ReadLink(DevicePath("0001:01:00.0")).text ==
        "../../../devices/platform/axi/pci0001:00/0001:01:00.0");
}

TEST_CASE("what is wrong in a machine file is told with its place", "[sim]") {
  const auto message = [](const std::string& yaml) {
    const auto machine = ParseMachine(yaml, "m.yaml");
    return machine.ok() ? "ok" : std::string(machine.status().message());
  };
  CHECK(message("devices:\n- {address: '0000:01:00.0', divice: '1'}\n") ==
        "m.yaml: line 2: unknown key 'divice'");
  CHECK(message("devices:\n- {address: '0000:01:00.0', vendor: 'xyz'}\n").starts_with("m.yaml: "));
  CHECK(message("devices:\n- {address: a}\n- {address: a}\n") == "m.yaml: a is listed twice");
  CHECK(message("devices:\n- {address: a, parent: b}\n- {address: b, parent: a}\n") ==
        "m.yaml: a is below itself");
}

TEST_CASE("a removed device comes back with a rescan, without its override", "[sim]") {
  const auto kernel = MakeKernel(kSmallNode);
  MoveToVfio(*kernel, kCard);
  CHECK(kernel->Write(DevicePath(kCard) + "/remove", "1") == 0);
  CHECK_FALSE(kernel->Exists(DevicePath(kCard)));
  CHECK_FALSE(kernel->Exists("dev/vfio/14"));
  CHECK(kernel->Write("sys/bus/pci/rescan", "1") == 0);
  CHECK(DriverOf(*kernel, kCard) == "e1000e");
  CHECK(ReadText(*kernel, DevicePath(kCard) + "/driver_override") == "(null)\n");
}

TEST_CASE("a device that fell off the bus is not found by a rescan", "[sim]") {
  const auto kernel = MakeKernel(kSmallNode);
  REQUIRE(kernel->Control("remove 0000:01:00.0") == 0);
  CHECK(kernel->Write("sys/bus/pci/rescan", "1") == 0);
  CHECK_FALSE(kernel->Exists(DevicePath(kCard)));
  CHECK_FALSE(kernel->Exists("sys/class/iommu/dmar0/devices/0000:01:00.0"));
  REQUIRE(kernel->Control("add 0000:01:00.0") == 0);
  CHECK(kernel->Exists("sys/class/iommu/dmar0/devices/0000:01:00.0"));
  CHECK(DriverOf(*kernel, kCard) == "e1000e");
  CHECK(GroupOf(*kernel, kCard) == "14");
}

TEST_CASE("with drivers_autoprobe off a new device stays without a driver", "[sim]") {
  const auto kernel = MakeKernel(kSmallNode);
  REQUIRE(kernel->Write("sys/bus/pci/drivers_autoprobe", "0") == 0);
  REQUIRE(kernel->Control("remove 0000:01:00.0") == 0);
  REQUIRE(kernel->Control("add 0000:01:00.0") == 0);
  CHECK(DriverOf(*kernel, kCard).empty());
  CHECK(Probe(*kernel, kCard) == 0);
  CHECK(DriverOf(*kernel, kCard) == "e1000e");
}

TEST_CASE("removing a bridge removes everything below it", "[sim]") {
  const auto kernel = MakeKernel(kSmallNode);
  CHECK(kernel->Write(DevicePath("0000:00:02.1") + "/remove", "1") == 0);
  CHECK_FALSE(kernel->Exists(DevicePath(kFirst)));
  CHECK_FALSE(kernel->Exists("sys/kernel/iommu_groups/15"));
  CHECK(kernel->Write("sys/bus/pci/rescan", "1") == 0);
  CHECK(kernel->Exists(DevicePath(kSecond)));
}

TEST_CASE("a synthetic node has as many functions as asked for, bound or not", "[sim]") {
  const auto count = [](const Machine& machine, const std::string& driver) {
    return std::count_if(machine.devices.begin(), machine.devices.end(),
                         [&](const MachineDevice& device) { return device.driver == driver; });
  };
  CHECK(count(MakeSyntheticMachine(4096, true), "vfio-pci") == 4096);
  CHECK(count(MakeSyntheticMachine(64, false), "nvidia") == 32);
  Kernel kernel(MakeSyntheticMachine(4096, true));
  CHECK(kernel.List("dev/vfio").size() == 2048 + 1);
}

TEST_CASE("a dump has the same texts and links as the tree", "[sim]") {
  std::string directory = (fs::temp_directory_path() / "sim-dump-XXXXXX").string();
  REQUIRE(::mkdtemp(directory.data()) != nullptr);
  const auto kernel = MakeKernel(kSmallNode);
  const absl::Status dumped = DumpTree(*kernel, directory);
  INFO(dumped.ToString());
  CHECK(dumped.ok());
  const fs::path device = fs::path(directory) / DevicePath(kCard);
  CHECK(fs::read_symlink(device / "driver") == "../../../../bus/pci/drivers/e1000e");
  CHECK(fs::file_size(device / "config") == 4096);
  CHECK(fs::is_character_file(fs::path(directory) / "dev/vfio/vfio"));
  fs::remove_all(directory);
}

}  // namespace
}  // namespace vfio_agent::sim
