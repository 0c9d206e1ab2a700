#include <cerrno>

#include "test/sim/kernel_fixture.h"

namespace vfio_agent::sim {
namespace {

constexpr char kNode[] = R"(
host: {iommu_active: true, iommu: intel}
devices:
- address: "0000:41:00.0"
  vendor: "10de"
  device: "26b9"
  class: "030200"
  driver: nvidia
  iommu_group: 5
  sriov_totalvfs: 4
  sriov_numvfs: 3
  sriov_offset: 4
  sriov_vf_driver: nvidia
  vgpu: {memory: 3, types: {1145: {name: NVIDIA L40S-1B, size: 1}, 1153: {name: NVIDIA L40S-3Q, size: 3}}}
)";
constexpr char kFirstVf[] = "0000:41:00.4";
constexpr char kSecondVf[] = "0000:41:00.5";

std::string File(const std::string& vf, const std::string& name) {
  return DevicePath(vf) + "/nvidia/" + name;
}
int Set(Kernel& kernel, const std::string& vf, const std::string& type) {
  return kernel.Write(File(vf, "current_vgpu_type"), type);
}
std::string Creatable(Kernel& kernel, const std::string& vf) {
  return ReadText(kernel, File(vf, "creatable_vgpu_types"));
}

TEST_CASE("virtual functions list what they can be, the physical one has no such files", "[sim]") {
  const auto kernel = MakeKernel(kNode);
  CHECK(Creatable(*kernel, kFirstVf) ==
        "ID    : vGPU Name\n1145  : NVIDIA L40S-1B\n1153  : NVIDIA L40S-3Q\n");
  CHECK(ReadText(*kernel, File(kFirstVf, "current_vgpu_type")) == "0\n");
  CHECK_FALSE(kernel->Exists(DevicePath("0000:41:00.0") + "/nvidia"));
}

TEST_CASE("a type makes a device of vfio's on the same driver; one size fits a card", "[sim]") {
  const auto kernel = MakeKernel(kNode);
  REQUIRE(Set(*kernel, kFirstVf, "1145") == 0);
  CHECK(ReadText(*kernel, File(kFirstVf, "current_vgpu_type")) == "1145\n");
  CHECK(DriverOf(*kernel, kFirstVf) == "nvidia");
  CHECK(kernel->Exists("dev/vfio/0"));
  CHECK(Creatable(*kernel, kFirstVf) == "ID    : vGPU Name\n");
  CHECK(Creatable(*kernel, kSecondVf) == "ID    : vGPU Name\n1145  : NVIDIA L40S-1B\n");
  CHECK(Set(*kernel, kSecondVf, "1153") == EPERM);
  CHECK(Set(*kernel, kSecondVf, "7") == EINVAL);
  CHECK(Set(*kernel, kFirstVf, "0") == 0);
  CHECK_FALSE(kernel->Exists("dev/vfio/0"));
}

TEST_CASE("what a guest has open keeps its type", "[sim]") {
  const auto kernel = MakeKernel(kNode);
  REQUIRE(Set(*kernel, kFirstVf, "1145") == 0);
  REQUIRE(kernel->Control("hold 0 4242 qemu-kvm") == 0);
  CHECK(Set(*kernel, kFirstVf, "0") == EPERM);
  REQUIRE(kernel->Control("free 0") == 0);
  CHECK(Set(*kernel, kFirstVf, "0") == 0);
}

TEST_CASE("the driver that goes takes the types with it", "[sim]") {
  const auto kernel = MakeKernel(kNode);
  REQUIRE(Set(*kernel, kFirstVf, "1145") == 0);
  REQUIRE(kernel->Write("sys/bus/pci/drivers/nvidia/unbind", kFirstVf) == 0);
  CHECK_FALSE(kernel->Exists(File(kFirstVf, "current_vgpu_type")));
  CHECK_FALSE(kernel->Exists("dev/vfio/0"));
}

}  // namespace
}  // namespace vfio_agent::sim
