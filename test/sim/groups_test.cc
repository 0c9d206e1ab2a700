#include <cerrno>

#include "test/sim/kernel_fixture.h"

namespace vfio_agent::sim {
namespace {

TEST_CASE("the group's node comes with the first member on vfio and goes with the last", "[sim]") {
  const auto kernel = MakeKernel(kSmallNode);
  MoveToVfio(*kernel, kFirst);
  CHECK(kernel->Exists("dev/vfio/15"));
  MoveToVfio(*kernel, kSecond);
  REQUIRE(Unbind(*kernel, kFirst) == 0);
  CHECK(kernel->Exists("dev/vfio/15"));
  REQUIRE(Unbind(*kernel, kSecond) == 0);
  CHECK_FALSE(kernel->Exists("dev/vfio/15"));
  CHECK(kernel->Exists("dev/vfio/vfio"));
}

TEST_CASE("a fault keeps the group's node from coming with a device", "[sim]") {
  const auto kernel = MakeKernel(kSmallNode);
  REQUIRE(kernel->Control("fault {device: \"" + std::string(kFirst) +
                          "\", op: node, once: true}") == 0);
  MoveToVfio(*kernel, kFirst);
  CHECK_FALSE(kernel->Exists("dev/vfio/15"));
  MoveToVfio(*kernel, kSecond);
  CHECK(kernel->Exists("dev/vfio/15"));
}

TEST_CASE(
    "d3cold_allowed keeps what is written, unless a fault answers, and a new device allows it",
    "[sim]") {
  const auto kernel = MakeKernel(kSmallNode);
  const std::string path = DevicePath(kCard) + "/d3cold_allowed";
  REQUIRE(kernel->Control("fault {device: \"*\", op: d3cold, errno: EIO, once: true}") == 0);
  CHECK(kernel->Write(path, "0") == EIO);
  CHECK(ReadText(*kernel, path) == "1\n");
  CHECK(kernel->Write(path, "0") == 0);
  CHECK(ReadText(*kernel, path) == "0\n");
  REQUIRE(kernel->Control("remove " + std::string(kCard)) == 0);
  REQUIRE(kernel->Control("add " + std::string(kCard)) == 0);
  CHECK(ReadText(*kernel, path) == "1\n");
}

TEST_CASE("group nodes look like character devices of their owner only", "[sim]") {
  const auto kernel = MakeKernel(kSmallNode);
  MoveToVfio(*kernel, kCard);
  const auto node = kernel->Stat("dev/vfio/14");
  REQUIRE(node.has_value());
  CHECK(node->kind == NodeKind::kCharacterDevice);
  CHECK(node->mode == 0600);
}

TEST_CASE("a group lists its members and its reserved regions", "[sim]") {
  const auto kernel =
      MakeKernel(std::string(kSmallNode) + "groups:\n  14: {reserved: [\"0x0 0xffff direct\"]}\n");
  const std::string groups = "sys/kernel/iommu_groups/";
  CHECK(kernel->List(groups + "15/devices") == std::vector<std::string>{kFirst, kSecond});
  CHECK(ReadText(*kernel, groups + "14/reserved_regions") == "0x0 0xffff direct\n");
  CHECK(ReadText(*kernel, groups + "15/reserved_regions") ==
        "0x00000000fee00000 0x00000000feefffff msi\n");
  CHECK(ReadText(*kernel, groups + "15/type") == "DMA\n");
  CHECK_FALSE(kernel->Exists(groups + "15/name"));
}

TEST_CASE("a host driver cannot take the sibling of a group in use", "[sim]") {
  const auto kernel = MakeKernel(kSmallNode);
  MoveToVfio(*kernel, kFirst);
  REQUIRE(Unbind(*kernel, kSecond) == 0);
  REQUIRE(kernel->Control("hold 15 7001 qemu-system-x86") == 0);
  CHECK(Probe(*kernel, kSecond) == EINVAL);
  CHECK(DriverOf(*kernel, kSecond).empty());
  REQUIRE(kernel->Control("free 15") == 0);
  CHECK(Probe(*kernel, kSecond) == 0);
  CHECK(DriverOf(*kernel, kSecond) == "snd_hda_intel");
}

TEST_CASE("a host driver may return into a group on vfio that nobody has open", "[sim]") {
  const auto kernel = MakeKernel(kSmallNode);
  MoveToVfio(*kernel, kFirst);
  REQUIRE(Unbind(*kernel, kSecond) == 0);
  CHECK(Probe(*kernel, kSecond) == 0);
  CHECK(DriverOf(*kernel, kSecond) == "snd_hda_intel");
}

TEST_CASE("whoever holds a group shows up in proc with the node open", "[sim]") {
  const auto kernel = MakeKernel(kSmallNode);
  MoveToVfio(*kernel, kCard);
  REQUIRE(kernel->Control("hold 14 7001 qemu-system-x86") == 0);
  CHECK(ReadText(*kernel, "proc/7001/comm") == "qemu-system-x86\n");
  CHECK(kernel->ReadLink("proc/7001/fd/3").text == "/dev/vfio/14");
  REQUIRE(kernel->Control("free 14") == 0);
  CHECK_FALSE(kernel->Exists("proc/7001"));
}

TEST_CASE("in no-IOMMU mode the group lives as long as the binding", "[sim]") {
  const auto kernel = MakeKernel(R"(
host: {iommu_active: false, noiommu: "Y"}
devices:
- {address: "0000:01:00.0", vendor: "10de", device: "2204", class: "030000", driver: nvidia}
)");
  CHECK(kernel->List("sys/kernel/iommu_groups").empty());
  MoveToVfio(*kernel, kCard);
  CHECK(ReadText(*kernel, DevicePath(kCard) + "/iommu_group/name") == "vfio-noiommu\n");
  CHECK(kernel->Exists("dev/vfio/noiommu-0"));
  REQUIRE(Unbind(*kernel, kCard) == 0);
  CHECK(kernel->List("sys/kernel/iommu_groups").empty());
  CHECK_FALSE(kernel->Exists("dev/vfio/noiommu-0"));
}

TEST_CASE("vfio-dev and its node exist as far as the kernel was built with them", "[sim]") {
  const auto made = [](const std::string& cdevs) {
    return MakeKernel("host: {iommu_active: true, cdevs: " + cdevs + R"(}
devices:
- {address: "0000:01:00.0", vendor: "10de", device: "2204", class: "030000", driver: vfio-pci, iommu_group: 20}
)");
  };
  const std::string attribute = DevicePath(kCard) + "/vfio-dev/vfio0";
  const auto none = made("none");
  CHECK_FALSE(none->Exists(attribute));
  const auto sysfs = made("sysfs");
  CHECK(sysfs->Exists(attribute));
  CHECK_FALSE(sysfs->Exists("dev/vfio/devices"));
  const auto full = made("full");
  CHECK(ReadText(*full, attribute + "/dev") == "242:0\n");
  CHECK(full->Exists("dev/vfio/devices/vfio0"));
  CHECK(full->Exists("dev/iommu"));
  REQUIRE(Unbind(*full, kCard) == 0);
  CHECK_FALSE(full->Exists("dev/vfio/devices"));
}

}  // namespace
}  // namespace vfio_agent::sim
