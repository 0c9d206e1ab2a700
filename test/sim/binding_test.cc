#include <cerrno>

#include "test/sim/kernel_fixture.h"

namespace vfio_agent::sim {
namespace {

TEST_CASE("override, unbind and drivers_probe move a device to vfio-pci", "[sim]") {
  const auto kernel = MakeKernel(kSmallNode);
  CHECK_FALSE(kernel->Exists("dev/vfio/14"));
  CHECK(Override(*kernel, kCard, "vfio-pci") == 0);
  CHECK(Unbind(*kernel, kCard) == 0);
  CHECK(DriverOf(*kernel, kCard).empty());
  CHECK_FALSE(kernel->Exists("sys/bus/pci/drivers/e1000e/0000:01:00.0"));
  CHECK(Probe(*kernel, kCard) == 0);
  CHECK(DriverOf(*kernel, kCard) == "vfio-pci");
  CHECK(kernel->Exists("sys/bus/pci/drivers/vfio-pci/0000:01:00.0"));
  CHECK(kernel->Exists("dev/vfio/14"));
  CHECK(ReadText(*kernel, DevicePath(kCard) + "/uevent").starts_with("DRIVER=vfio-pci\n"));
}

TEST_CASE("the driver of before takes the device back once the override is cleared", "[sim]") {
  const auto kernel = MakeKernel(kSmallNode);
  MoveToVfio(*kernel, kCard);
  CHECK(Unbind(*kernel, kCard) == 0);
  CHECK(Override(*kernel, kCard, "\n") == 0);
  CHECK(Probe(*kernel, kCard) == 0);
  CHECK(DriverOf(*kernel, kCard) == "e1000e");
}

TEST_CASE("an unset driver_override reads (null)", "[sim]") {
  const auto kernel = MakeKernel(kSmallNode);
  CHECK(ReadText(*kernel, DevicePath(kCard) + "/driver_override") == "(null)\n");
}

TEST_CASE("a newline or a NUL clears driver_override and a write of nothing does not", "[sim]") {
  const auto kernel = MakeKernel(kSmallNode);
  const std::string path = DevicePath(kCard) + "/driver_override";
  for (const std::string& clear : {std::string("\n"), std::string(1, '\0')}) {
    REQUIRE(Override(*kernel, kCard, "vfio-pci\n") == 0);
    CHECK(ReadText(*kernel, path) == "vfio-pci\n");
    CHECK(Override(*kernel, kCard, "") == 0);
    CHECK(ReadText(*kernel, path) == "vfio-pci\n");
    CHECK(Override(*kernel, kCard, clear) == 0);
    CHECK(ReadText(*kernel, path) == "(null)\n");
  }
}

TEST_CASE("a driver_override longer than a page is EINVAL", "[sim]") {
  const auto kernel = MakeKernel(kSmallNode);
  CHECK(Override(*kernel, kCard, std::string(5000, 'x')) == EINVAL);
  CHECK(ReadText(*kernel, DevicePath(kCard) + "/driver_override") == "(null)\n");
}

TEST_CASE("an override with an unknown driver is taken and nothing binds", "[sim]") {
  const auto kernel = MakeKernel(kSmallNode);
  REQUIRE(Unbind(*kernel, kCard) == 0);
  CHECK(Override(*kernel, kCard, "nosuch") == 0);
  CHECK(Probe(*kernel, kCard) == 0);
  CHECK(DriverOf(*kernel, kCard).empty());
}

TEST_CASE("drivers_probe says ok for a bound device and leaves it where it is", "[sim]") {
  const auto kernel = MakeKernel(kSmallNode);
  REQUIRE(Override(*kernel, kCard, "vfio-pci") == 0);
  CHECK(Probe(*kernel, kCard) == 0);
  CHECK(DriverOf(*kernel, kCard) == "e1000e");
}

TEST_CASE("drivers_probe says ok although vfio-pci refused a bridge", "[sim]") {
  const auto kernel = MakeKernel(kSmallNode);
  const std::string bridge = "0000:00:02.0";
  REQUIRE(Override(*kernel, bridge, "vfio-pci") == 0);
  REQUIRE(Unbind(*kernel, bridge) == 0);
  CHECK(Probe(*kernel, bridge) == 0);
  CHECK(DriverOf(*kernel, bridge).empty());
  CHECK(kernel->Write("sys/bus/pci/drivers/vfio-pci/bind", bridge) == EINVAL);
}

TEST_CASE("without a group drivers_probe fails silently and bind says EINVAL", "[sim]") {
  const auto kernel = MakeKernel(kSmallNode);
  const std::string disk = "0000:00:1f.2";
  REQUIRE(Override(*kernel, disk, "vfio-pci") == 0);
  REQUIRE(Unbind(*kernel, disk) == 0);
  CHECK(Probe(*kernel, disk) == 0);
  CHECK(DriverOf(*kernel, disk).empty());
  CHECK(kernel->Write("sys/bus/pci/drivers/vfio-pci/bind", disk) == EINVAL);
}

TEST_CASE("bind says ENODEV without a matching id or override", "[sim]") {
  const auto kernel = MakeKernel(kSmallNode);
  REQUIRE(Unbind(*kernel, kCard) == 0);
  CHECK(kernel->Write("sys/bus/pci/drivers/vfio-pci/bind", kCard) == ENODEV);
  REQUIRE(Override(*kernel, kCard, "pci-stub") == 0);
  CHECK(kernel->Write("sys/bus/pci/drivers/e1000e/bind", kCard) == ENODEV);
  CHECK(kernel->Write("sys/bus/pci/drivers/pci-stub/bind", kCard) == 0);
}

TEST_CASE("bind says EBUSY for a device that another driver has", "[sim]") {
  const auto kernel = MakeKernel(kSmallNode);
  REQUIRE(Override(*kernel, kCard, "vfio-pci") == 0);
  CHECK(kernel->Write("sys/bus/pci/drivers/vfio-pci/bind", kCard) == EBUSY);
}

TEST_CASE("absent devices and foreign drivers are ENODEV", "[sim]") {
  const auto kernel = MakeKernel(kSmallNode);
  CHECK(Probe(*kernel, "0000:99:00.0") == ENODEV);
  CHECK(kernel->Write("sys/bus/pci/drivers/pci-stub/unbind", "0000:99:00.0") == ENODEV);
  CHECK(kernel->Write("sys/bus/pci/drivers/vfio-pci/unbind", kCard) == ENODEV);
  CHECK(kernel->Write("sys/bus/pci/drivers_probe", "01:00.0") == ENODEV);
}

TEST_CASE("an address may end in a newline", "[sim]") {
  const auto kernel = MakeKernel(kSmallNode);
  CHECK(kernel->Write("sys/bus/pci/drivers/e1000e/unbind", std::string(kCard) + "\n") == 0);
  CHECK(DriverOf(*kernel, kCard).empty());
}

TEST_CASE("new_id makes vfio-pci take every free device of that id at once", "[sim]") {
  const auto kernel = MakeKernel(kSmallNode);
  REQUIRE(Unbind(*kernel, kCard) == 0);
  CHECK(kernel->Write("sys/bus/pci/drivers/vfio-pci/new_id", "8086 10d3") == 0);
  CHECK(DriverOf(*kernel, kCard) == "vfio-pci");
  CHECK(DriverOf(*kernel, kFirst) == "e1000e");
  CHECK(kernel->Write("sys/bus/pci/drivers/vfio-pci/new_id", "8086 10d3") == EEXIST);
  CHECK(kernel->Write("sys/bus/pci/drivers/vfio-pci/remove_id", "8086 10d3") == 0);
  CHECK(kernel->Write("sys/bus/pci/drivers/vfio-pci/remove_id", "8086 10d3") == ENODEV);
  CHECK(kernel->Write("sys/bus/pci/drivers/vfio-pci/new_id", "rubbish") == EINVAL);
}

TEST_CASE("a driver whose probe fails leaves the device to the next one that fits", "[sim]") {
  const auto kernel = MakeKernel(R"(
drivers: [nouveau]
devices:
- {address: "0000:01:00.0", vendor: "10de", device: "2204", class: "030000", driver: nvidia}
faults:
- {device: "0000:01:00.0", op: probe, errno: EIO, once: true}
)");
  REQUIRE(Unbind(*kernel, kCard) == 0);
  CHECK(Probe(*kernel, kCard) == 0);
  CHECK(DriverOf(*kernel, kCard) == "nouveau");
}

TEST_CASE("a vfio driver that is not loaded has no directory and its override binds nothing",
          "[sim]") {
  const auto kernel = MakeKernel(R"(
host: {iommu_active: true, vfio_pci: installed}
devices:
- {address: "0000:01:00.0", vendor: "10de", device: "2204", class: "030000", driver: nvidia, iommu_group: 3}
)");
  CHECK_FALSE(kernel->Exists("sys/bus/pci/drivers/vfio-pci"));
  CHECK_FALSE(kernel->Exists("dev/vfio/vfio"));
  REQUIRE(Override(*kernel, kCard, "vfio-pci") == 0);
  REQUIRE(Unbind(*kernel, kCard) == 0);
  CHECK(Probe(*kernel, kCard) == 0);
  CHECK(DriverOf(*kernel, kCard).empty());
  REQUIRE(kernel->Control("load vfio-pci") == 0);
  CHECK(Probe(*kernel, kCard) == 0);
  CHECK(DriverOf(*kernel, kCard) == "vfio-pci");
}

TEST_CASE("attributes that only act cannot be read and facts cannot be written", "[sim]") {
  const auto kernel = MakeKernel(kSmallNode);
  CHECK(kernel->Read("sys/bus/pci/drivers_probe").error == EACCES);
  CHECK(kernel->Write(DevicePath(kCard) + "/vendor", "0x10de") == EACCES);
  CHECK(kernel->Write("sys/bus/pci/drivers/nosuch/bind", kCard) == ENOENT);
}

}  // namespace
}  // namespace vfio_agent::sim
