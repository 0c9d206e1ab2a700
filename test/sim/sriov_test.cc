#include <cerrno>
#include <future>

#include "test/sim/kernel_fixture.h"

namespace vfio_agent::sim {
namespace {

constexpr char kNode[] = R"(
host: {iommu_active: true, iommu: intel}
devices:
- {address: "0000:00:06.0", vendor: "1b36", device: "000c", class: "060400", driver: pcieport, iommu_group: 0}
- {address: "0000:0b:00.0", vendor: "1b36", device: "0010", class: "010802", driver: nvme, iommu_group: 1, parent: "0000:00:06.0", sriov_totalvfs: 4, reset_method: "flr bus"}
)";
constexpr char kPf[] = "0000:0b:00.0";
constexpr char kVf[] = "0000:0b:00.1";

int SetVfs(Kernel& kernel, const std::string& count) {
  return kernel.Write(DevicePath(kPf) + "/sriov_numvfs", count);
}

std::unique_ptr<Kernel> MakeNode() {
  auto kernel = MakeKernel(kNode);
  REQUIRE(kernel->Write(DevicePath(kPf) + "/sriov_drivers_autoprobe", "0") == 0);
  return kernel;
}

TEST_CASE("VFs get a group each and links to and from their PF", "[sim]") {
  const auto kernel = MakeNode();
  CHECK(SetVfs(*kernel, "2") == 0);
  CHECK(ReadText(*kernel, DevicePath(kPf) + "/sriov_numvfs") == "2\n");
  CHECK(kernel->ReadLink(DevicePath(kPf) + "/virtfn1").text == "../0000:0b:00.2");
  CHECK(kernel->ReadLink(DevicePath(kVf) + "/physfn").text == "../0000:0b:00.0");
  CHECK(kernel->List("sys/kernel/iommu_groups/2/devices") == std::vector<std::string>{kVf});
  CHECK(DriverOf(*kernel, kVf).empty());
}

TEST_CASE("a VF's config space hides its ids and sysfs tells them", "[sim]") {
  const auto kernel = MakeNode();
  REQUIRE(SetVfs(*kernel, "1") == 0);
  const std::string config = ReadText(*kernel, DevicePath(kVf) + "/config");
  CHECK(config.substr(0, 4) == "\xff\xff\xff\xff");
  CHECK(config.substr(8, 4) == std::string("\x00\x02\x08\x01", 4));
  CHECK(ReadText(*kernel, DevicePath(kVf) + "/vendor") == "0x1b36\n");
}

TEST_CASE("more VFs than there are is ERANGE and another non-zero count EBUSY", "[sim]") {
  const auto kernel = MakeNode();
  CHECK(SetVfs(*kernel, "5") == ERANGE);
  CHECK(SetVfs(*kernel, "x") == EINVAL);
  CHECK(SetVfs(*kernel, "2") == 0);
  CHECK(SetVfs(*kernel, "2") == 0);
  CHECK(SetVfs(*kernel, "3") == EBUSY);
  CHECK(SetVfs(*kernel, "0") == 0);
  CHECK_FALSE(kernel->Exists(DevicePath(kVf)));
  CHECK_FALSE(kernel->Exists(DevicePath(kPf) + "/virtfn0"));
}

TEST_CASE("with autoprobe the VFs are offered to the drivers", "[sim]") {
  const auto kernel = MakeKernel(kNode);
  REQUIRE(SetVfs(*kernel, "1") == 0);
  CHECK(DriverOf(*kernel, kVf) == "nvme");
}

TEST_CASE("vfio-pci refuses a PF whose VFs are enabled, and only bind says so", "[sim]") {
  const auto kernel = MakeNode();
  REQUIRE(SetVfs(*kernel, "1") == 0);
  REQUIRE(Override(*kernel, kPf, "vfio-pci") == 0);
  REQUIRE(Unbind(*kernel, kPf) == 0);
  CHECK(kernel->Exists(DevicePath(kVf)));
  CHECK(Probe(*kernel, kPf) == 0);
  CHECK(DriverOf(*kernel, kPf).empty());
  CHECK(kernel->Write("sys/bus/pci/drivers/vfio-pci/bind", kPf) == EBUSY);
}

TEST_CASE("no driver or vfio-pci on the PF: VFs cannot be made", "[sim]") {
  const auto kernel = MakeNode();
  REQUIRE(Unbind(*kernel, kPf) == 0);
  CHECK(SetVfs(*kernel, "1") == ENOENT);
  REQUIRE(Override(*kernel, kPf, "vfio-pci") == 0);
  REQUIRE(Probe(*kernel, kPf) == 0);
  REQUIRE(DriverOf(*kernel, kPf) == "vfio-pci");
  CHECK(SetVfs(*kernel, "1") == ENOENT);
}

TEST_CASE("taking the VFs away works while they are closed on vfio-pci", "[sim]") {
  const auto kernel = MakeNode();
  REQUIRE(SetVfs(*kernel, "1") == 0);
  REQUIRE(Override(*kernel, kVf, "vfio-pci") == 0);
  REQUIRE(Probe(*kernel, kVf) == 0);
  CHECK(kernel->Exists("dev/vfio/2"));
  CHECK(SetVfs(*kernel, "0") == 0);
  CHECK_FALSE(kernel->Exists("dev/vfio/2"));
}

TEST_CASE("taking the VFs away waits for one that is open", "[sim]") {
  const auto kernel = MakeNode();
  REQUIRE(SetVfs(*kernel, "1") == 0);
  REQUIRE(Override(*kernel, kVf, "vfio-pci") == 0);
  REQUIRE(Probe(*kernel, kVf) == 0);
  REQUIRE(kernel->Control("hold 2 7001 qemu-system-x86") == 0);
  auto away = std::async(std::launch::async, [&] { return SetVfs(*kernel, "0"); });
  REQUIRE(Eventually([&] { return kernel->Log().ends_with("sriov_numvfs=0 running\n"); }));
  CHECK(away.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready);
  REQUIRE(kernel->Control("free 2") == 0);
  CHECK(away.get() == 0);
  CHECK_FALSE(kernel->Exists(DevicePath(kVf)));
}

TEST_CASE("function numbers beyond 7 move to the next device number", "[sim]") {
  const auto kernel = MakeKernel(R"(
host: {iommu_active: true}
devices:
- {address: "0001:04:00.0", vendor: "10de", device: "2bb5", class: "030200", driver: nvidia, iommu_group: 1, sriov_totalvfs: 48, sriov_numvfs: 24, sriov_offset: 2}
)");
  CHECK(kernel->List("sys/bus/pci/devices").size() == 25);
  CHECK(kernel->Exists("sys/bus/pci/devices/0001:04:00.2"));
  CHECK(kernel->Exists("sys/bus/pci/devices/0001:04:03.1"));
}

}  // namespace
}  // namespace vfio_agent::sim
