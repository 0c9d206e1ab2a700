#include "deviceplugin/offer/allocate.h"
#include "iommu/policy/naming.h"

#include "absl/strings/str_format.h"
#include "catch2/catch.hpp"
#include "test/deviceplugin/support.h"

namespace vfio_agent {
namespace {

const char kGpu[] = "nvidia.com/GH100_H100_SXM5_80GB";

// Two GPUs, each with an audio function in its group, as the public report has them.
IndexedOffer TwoGpus() {
  OfferedUnit a = TestUnit("0000:21:00.0", 0), b = TestUnit("0000:41:00.0", 0);
  a.members.push_back("0000:21:00.1");
  b.members.push_back("0000:41:00.1");
  a.group = 10;
  b.group = 11;
  a.nodes = {"/dev/vfio/vfio", "/dev/vfio/10"};
  b.nodes = {"/dev/vfio/vfio", "/dev/vfio/11"};
  return IndexedOffer(TestOffer(kGpu, {a, b}));
}

absl::StatusOr<v1beta1::ContainerAllocateResponse> Allocate(const IndexedOffer& offer,
                                                            const std::vector<std::string>& ids) {
  const auto units = FindUnits(offer, ids);
  if (!units.ok()) return units.status();
  return MakeAllocation(offer.offer(), *units);
}

std::vector<std::string> Nodes(const v1beta1::ContainerAllocateResponse& response) {
  std::vector<std::string> nodes;
  for (const v1beta1::DeviceSpec& node : response.devices()) {
    CHECK(node.host_path() == node.container_path());
    CHECK(node.permissions() == "mrw");
    nodes.push_back(node.host_path());
  }
  return nodes;
}

TEST_CASE("R41: the variable is the name in upper case with only '/' and '.' replaced",
          "[deviceplugin]") {
  struct Row {
    std::string resource, variable;
  };
  const Row row =
      GENERATE(Row{"nvidia.com/GA102GL_A10", "PCI_RESOURCE_NVIDIA_COM_GA102GL_A10"},
               Row{"nvidia.com/TU104GL_TESLA-T4", "PCI_RESOURCE_NVIDIA_COM_TU104GL_TESLA-T4"},
               Row{"nvidia.com/tesla-t4", "PCI_RESOURCE_NVIDIA_COM_TESLA-T4"},
               Row{"gpu-lab.example.org/a.b_c", "PCI_RESOURCE_GPU-LAB_EXAMPLE_ORG_A_B_C"});
  CHECK(ResourceVariable(row.resource) == row.variable);
}

TEST_CASE("R40: the answer does not depend on the order of the request", "[deviceplugin]") {
  const auto ids = GENERATE(std::vector<std::string>{"0000:21:00.0", "0000:41:00.0"},
                            std::vector<std::string>{"0000:41:00.0", "0000:21:00.0"});
  const auto response = Allocate(TwoGpus(), ids);
  REQUIRE(response.ok());
  CHECK(response->envs().at(ResourceVariable(kGpu)) == "0000:21:00.0,0000:41:00.0");
  CHECK(Nodes(*response) ==
        std::vector<std::string>{"/dev/vfio/vfio", "/dev/vfio/10", "/dev/vfio/11"});
}

TEST_CASE("R43: companions are bound but never named", "[deviceplugin]") {
  const auto response = Allocate(TwoGpus(), {"0000:41:00.0"});
  REQUIRE(response.ok());
  CHECK(response->envs().at(ResourceVariable(kGpu)) == "0000:41:00.0");
}

TEST_CASE("R44, R47, T19, T21: one variable, no mounts, no annotations and no CDI names",
          "[deviceplugin]") {
  const auto response = Allocate(TwoGpus(), {"0000:21:00.0"});
  REQUIRE(response.ok());
  CHECK(response->envs_size() == 1);
  CHECK(response->mounts_size() == 0);
  CHECK(response->annotations_size() == 0);
  CHECK(response->cdi_devices_size() == 0);
}

TEST_CASE("R48: CDI names are <resource>=<unit>, one for each unit, where they are wanted",
          "[deviceplugin]") {
  Offer offer = TwoGpus().offer();
  offer.cdi_names = true;
  const auto response = Allocate(IndexedOffer(offer), {"0000:41:00.0", "0000:21:00.0"});
  REQUIRE(response.ok());
  REQUIRE(response->cdi_devices_size() == 2);
  CHECK(response->cdi_devices(0).name() == absl::StrFormat("%s=0000:21:00.0", kGpu));
  CHECK(response->cdi_devices(1).name() == absl::StrFormat("%s=0000:41:00.0", kGpu));
}

TEST_CASE(
    "R46: nothing but the unit's own nodes is handed out, also where the container's is absent",
    "[deviceplugin]") {
  OfferedUnit unit = TestUnit("0000:21:00.0");
  unit.nodes = {"/dev/vfio/devices/vfio0", "/dev/iommu"};  // a kernel without group nodes
  const auto response = Allocate(IndexedOffer(TestOffer(kGpu, {unit})), {"0000:21:00.0"});
  REQUIRE(response.ok());
  CHECK(Nodes(*response) == std::vector<std::string>{"/dev/vfio/devices/vfio0", "/dev/iommu"});
}

TEST_CASE("R46: the container's node and group nodes come once each, then cdevs and /dev/iommu",
          "[deviceplugin]") {
  OfferedUnit a = TestUnit("0000:21:00.0"), b = TestUnit("0000:22:00.0");
  a.nodes = {"/dev/vfio/vfio", "/dev/vfio/10", "/dev/vfio/devices/vfio0", "/dev/iommu"};
  b.nodes = {"/dev/vfio/vfio", "/dev/vfio/10", "/dev/vfio/devices/vfio1", "/dev/iommu"};
  const IndexedOffer offer(TestOffer(kGpu, {a, b}));
  const auto response = Allocate(offer, {"0000:22:00.0", "0000:21:00.0"});
  REQUIRE(response.ok());
  CHECK(Nodes(*response) == std::vector<std::string>{"/dev/vfio/vfio", "/dev/vfio/10",
                                                     "/dev/vfio/devices/vfio0",
                                                     "/dev/vfio/devices/vfio1", "/dev/iommu"});
}

TEST_CASE("a unit that stands for a whole group names all of its primaries", "[deviceplugin]") {
  OfferedUnit unit = TestUnit("0000:21:00.0");
  unit.addresses = {"0000:21:00.0", "0000:22:00.0"};
  const auto response = Allocate(IndexedOffer(TestOffer(kGpu, {unit})), {"0000:21:00.0"});
  REQUIRE(response.ok());
  CHECK(response->envs().at(ResourceVariable(kGpu)) == "0000:21:00.0,0000:22:00.0");
}

TEST_CASE("R37: what cannot be given is refused with the reason, never skipped", "[deviceplugin]") {
  Offer sick = TwoGpus().offer();
  sick.units[1].healthy = false;
  sick.units[1].reason = "0000:41:00.1 is bound to snd_hda_intel";
  struct Row {
    std::vector<std::string> ids;
    absl::StatusCode code;
    std::string text;
  };
  using absl::StatusCode;
  const Row row = GENERATE(
      Row{{}, StatusCode::kInvalidArgument, "names no device"},
      Row{{"0000:21:00.0", "0000:61:00.0"}, StatusCode::kInvalidArgument, "0000:61:00.0"},
      Row{{"21:00.0"}, StatusCode::kInvalidArgument, "'21:00.0' is not offered"},
      Row{{"0000:21:00.0", "0000:21:00.0"}, StatusCode::kInvalidArgument, "0000:21:00.0 twice"},
      Row{{"0000:41:00.0"}, StatusCode::kFailedPrecondition, "bound to snd_hda_intel"});
  const absl::Status status = Allocate(IndexedOffer(sick), row.ids).status();
  CHECK(status.code() == row.code);
  CHECK_THAT(std::string(status.message()), Catch::Contains(row.text) && Catch::Contains(kGpu));
}

TEST_CASE("every unit of a large offer is found by its id", "[deviceplugin]") {
  Offer large = TestOffer(kGpu, {});
  std::vector<std::string> ids;
  for (int i = 0; i < 4096; ++i) {
    large.units.push_back(
        TestUnit(absl::StrFormat("0000:%02x:%02x.%d", i / 256, i / 8 % 32, i % 8), 1 - i % 2));
    ids.push_back(large.units.back().id);
  }
  const IndexedOffer offer(large);
  const auto units = FindUnits(offer, ids);
  REQUIRE(units.ok());
  CHECK(units->size() == 4096);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (offer.Find(ids[i]) != i) FAIL(ids[i]);
  }
}

}  // namespace
}  // namespace vfio_agent
