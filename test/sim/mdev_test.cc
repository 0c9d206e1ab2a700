#include <future>

#include "test/sim/kernel_fixture.h"

namespace vfio_agent::sim {
namespace {

constexpr char kMdevNode[] = R"(
host: {iommu_active: true, iommu: intel}
devices:
- address: "0000:3b:00.0"
  vendor: "10de"
  device: "1eb8"
  class: "030200"
  driver: nvidia
  iommu_group: 5
  mdev_types:
    nvidia-222: {name: GRID T4-1Q, instances: 2}
    nvidia-225: {name: GRID T4-4Q, instances: 1}
)";
constexpr char kT4[] = "sys/bus/pci/devices/0000:3b:00.0";
constexpr char kUuid[] = "83b8f4f2-509f-382f-3c1e-e6bfe0fa1001";
constexpr char kOther[] = "83b8f4f2-509f-382f-3c1e-e6bfe0fa1002";
constexpr char kThird[] = "83b8f4f2-509f-382f-3c1e-e6bfe0fa1003";

std::string TypeFile(const std::string& type, const std::string& file) {
  return std::string(kT4) + "/mdev_supported_types/" + type + "/" + file;
}

int Create(Kernel& kernel, const std::string& type, const std::string& uuid) {
  return kernel.Write(TypeFile(type, "create"), uuid);
}

std::string Device(const std::string& uuid) { return "sys/bus/mdev/devices/" + uuid; }

TEST_CASE("a parent shows its types and what is left of them") {
  const auto kernel = MakeKernel(kMdevNode);
  CHECK(kernel->List("sys/class/mdev_bus") == std::vector<std::string>{"0000:3b:00.0"});
  CHECK(ReadText(*kernel, TypeFile("nvidia-222", "name")) == "GRID T4-1Q\n");
  CHECK(ReadText(*kernel, TypeFile("nvidia-222", "device_api")) == "vfio-pci\n");
  REQUIRE(Create(*kernel, "nvidia-222", kUuid) == 0);
  CHECK(ReadText(*kernel, TypeFile("nvidia-222", "available_instances")) == "1\n");
  CHECK(ReadText(*kernel, TypeFile("nvidia-225", "available_instances")) == "0\n");
}

TEST_CASE("an instance has a group, a node and a driver of its own until it is removed") {
  const auto kernel = MakeKernel(kMdevNode);
  REQUIRE(Create(*kernel, "nvidia-222", kUuid) == 0);
  CHECK(kernel->ReadLink(Device(kUuid) + "/iommu_group").text.ends_with("/iommu_groups/0"));
  CHECK(kernel->ReadLink(Device(kUuid) + "/mdev_type").text.ends_with("/nvidia-222"));
  CHECK(kernel->Exists("dev/vfio/0"));
  CHECK(kernel->Write(Device(kUuid) + "/remove", "x") == EINVAL);
  CHECK(kernel->Write(Device(kUuid) + "/remove", "0") == 0);
  CHECK(kernel->Exists(Device(kUuid)));
  CHECK(kernel->Write(Device(kUuid) + "/remove", "1") == 0);
  CHECK_FALSE(kernel->Exists(Device(kUuid)));
  CHECK_FALSE(kernel->Exists("dev/vfio/0"));
  CHECK_FALSE(kernel->Exists("sys/kernel/iommu_groups/0"));
}

TEST_CASE("create refuses what is no uuid, what is there, and what there is no room for") {
  const auto kernel = MakeKernel(kMdevNode);
  CHECK(Create(*kernel, "nvidia-222", "83b8f4f2") == EINVAL);
  REQUIRE(Create(*kernel, "nvidia-222", kUuid) == 0);
  CHECK(Create(*kernel, "nvidia-222", kUuid) == EEXIST);
  CHECK(Create(*kernel, "nvidia-225", kOther) == ENOSPC);
  REQUIRE(Create(*kernel, "nvidia-222", kOther) == 0);
  CHECK(Create(*kernel, "nvidia-222", kThird) == ENOSPC);
}

TEST_CASE("a removal that waits leaves the bus at once, and the rest with the holder") {
  const auto kernel = MakeKernel(kMdevNode);
  REQUIRE(Create(*kernel, "nvidia-222", kUuid) == 0);
  const std::string below = std::string(kT4) + "/" + kUuid;
  REQUIRE(kernel->Control("hold 0 7001 qemu-system-x86") == 0);
  auto removal =
      std::async(std::launch::async, [&] { return kernel->Write(Device(kUuid) + "/remove", "1"); });
  REQUIRE(Eventually([&] { return !kernel->Exists(Device(kUuid)); }));
  for (const char* gone : {"/mdev_type", "/driver", "/remove"}) {
    CAPTURE(gone);
    CHECK_FALSE(kernel->Exists(below + gone));
  }
  CHECK(kernel->Exists(below + "/iommu_group"));
  CHECK(kernel->Exists("dev/vfio/0"));
  CHECK(ReadText(*kernel, TypeFile("nvidia-222", "available_instances")) == "1\n");
  CHECK(Create(*kernel, "nvidia-222", kUuid) == EEXIST);
  REQUIRE(kernel->Control("free 0") == 0);
  CHECK(removal.get() == 0);
  CHECK_FALSE(kernel->Exists(below));
  CHECK(Create(*kernel, "nvidia-222", kUuid) == 0);
}

TEST_CASE("an instance has a node of its own where the kernel makes them") {
  const std::string text = kMdevNode;
  const auto kernel = MakeKernel("host: {iommu_active: true, iommu: intel, cdevs: full}" +
                                 text.substr(text.find("\ndevices")));
  REQUIRE(Create(*kernel, "nvidia-222", kUuid) == 0);
  CHECK(kernel->Exists(Device(kUuid) + "/vfio-dev/vfio0/dev"));
  CHECK(kernel->Exists("dev/vfio/devices/vfio0"));
  CHECK(kernel->Write(Device(kUuid) + "/remove", "1") == 0);
  CHECK_FALSE(kernel->Exists("dev/vfio/devices/vfio0"));
}

TEST_CASE("the parent's driver takes its instances with it") {
  const auto kernel = MakeKernel(kMdevNode);
  REQUIRE(Create(*kernel, "nvidia-222", kUuid) == 0);
  REQUIRE(Unbind(*kernel, "0000:3b:00.0") == 0);
  CHECK_FALSE(kernel->Exists(Device(kUuid)));
  CHECK(kernel->List("sys/class/mdev_bus").empty());
}

}  // namespace
}  // namespace vfio_agent::sim
