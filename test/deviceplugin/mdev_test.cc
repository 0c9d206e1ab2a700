// Units that are mediated devices: what is answered, and what is looked at before.
#include <filesystem>
#include <fstream>

#include "catch2/catch.hpp"
#include "deviceplugin/offer/allocate.h"
#include "deviceplugin/offer/verify.h"
#include "test/deviceplugin/support.h"
#include "test/support/facts.h"

namespace vfio_agent {
namespace {

namespace fs = std::filesystem;

constexpr char kResource[] = "nvidia.com/GRID_T4-1Q";
constexpr char kUuid[] = "83b8f4f2-509f-382f-3c1e-e6bfe0fa1001";

OfferedUnit Mdev() {
  return {.id = kUuid,
          .addresses = {kUuid},
          .group = 40,
          .nodes = {"/dev/vfio/vfio", "/dev/vfio/40"},
          .healthy = true,
          .mdev_type = "nvidia-222"};
}

// The node of that unit, as the kernel has it.
struct MdevTree {
  MdevTree() {
    Link("mdev_type", "x/nvidia-222");
    Link("iommu_group", "x/40");
    Link("driver", "x/nvidia-vgpu-vfio");
    fs::create_directories(dir.path() + "/dev/vfio");
    for (const char* node : {"vfio", "40"}) std::ofstream(dir.path() + "/dev/vfio/" + node) << "";
  }
  std::string Device() const { return dir.path() + "/sys/bus/mdev/devices/" + kUuid; }
  void Link(const std::string& name, const std::string& target) const {
    fs::create_directories(Device());
    fs::remove(Device() + "/" + name);
    if (!target.empty()) fs::create_symlink(target, Device() + "/" + name);
  }
  std::string Verify() const {
    return std::string(VerifyUnit(*Tree::Open(dir.path()), Mdev()).message());
  }
  TempDir dir;
};

TEST_CASE("R44: uuids are in the variable for mediated devices, and in no other",
          "[deviceplugin]") {
  const IndexedOffer offer(TestOffer(kResource, {Mdev()}));
  const auto units = FindUnits(offer, {kUuid});
  REQUIRE(units.ok());
  const auto answer = MakeAllocation(offer.offer(), *units);
  CHECK(answer.envs_size() == 1);
  CHECK(answer.envs().at("MDEV_PCI_RESOURCE_NVIDIA_COM_GRID_T4-1Q") == kUuid);
}

TEST_CASE("R38: a mediated device that has changed since it was offered is not given",
          "[deviceplugin]") {
  const MdevTree node;
  REQUIRE(node.Verify().empty());
  const std::string unit = std::string(kUuid) + ": ";
  SECTION("gone") {
    fs::remove_all(node.Device());
    CHECK_THAT(node.Verify(), Catch::StartsWith(unit + "device-gone: the mediated device is not"));
  }
  SECTION("made anew as another type") {
    node.Link("mdev_type", "x/nvidia-225");
    CHECK(node.Verify() == unit + "group-changed: it is of type nvidia-225 now, was of nvidia-222");
  }
  SECTION("made anew in another group") {
    node.Link("iommu_group", "x/41");
    CHECK_THAT(node.Verify(), Catch::Contains("group-changed") && Catch::Contains("41 now"));
  }
  SECTION("without a driver") {
    node.Link("driver", "");
    CHECK(node.Verify() == unit + "driver-changed: it is bound to no driver");
  }
  SECTION("without its node") {
    fs::remove(node.dir.path() + "/dev/vfio/40");
    CHECK_THAT(node.Verify(), Catch::Contains("node-missing"));
  }
}

TEST_CASE("a mediated device is given with a node of its own, and iommufd where it is asked for",
          "[deviceplugin]") {
  NodeFacts facts = Node({Gpu("0000:3b:00.0", 5)});
  facts.vfio_nodes = {"devices/vfio3"};
  facts.iommu_node = true;
  facts.mdev.instances = {
      {kUuid, At("0000:3b:00.0"), "nvidia-222", 40, "nvidia-vgpu-vfio", "vfio3"}};
  Plan plan;
  plan.resources = {{.name = kResource,
                     .units = {{.id = kUuid,
                                .primary = At("0000:3b:00.0"),
                                .group = 40,
                                .state = UnitState::kReady,
                                .mdev_type = "nvidia-222"}}}};
  const auto nodes = [&](const OfferOptions& options) {
    return MakeOffers(plan, facts, {}, options, nullptr, absl::UnixEpoch()).at(0).units.at(0).nodes;
  };
  CHECK(nodes({}) == std::vector<std::string>{"/dev/vfio/devices/vfio3"});
  CHECK(nodes({.iommufd = true}) ==
        std::vector<std::string>{"/dev/vfio/devices/vfio3", "/dev/iommu"});
}

TEST_CASE("R28: a mediated device that goes stays listed as unhealthy, with the reason",
          "[deviceplugin]") {
  NodeFacts facts = Node({Gpu("0000:3b:00.0", 5)});
  facts.vfio_nodes.insert("40");
  facts.mdev.instances = {{kUuid, At("0000:3b:00.0"), "nvidia-222", 40, "nvidia-vgpu-vfio"}};
  const Unit unit{.id = kUuid,
                  .primary = At("0000:3b:00.0"),
                  .group = 40,
                  .state = UnitState::kReady,
                  .mdev_type = "nvidia-222"};
  Plan plan;
  plan.resources = {{.name = kResource, .units = {unit}}};
  const auto offers = MakeOffers(plan, facts, {}, {}, nullptr, absl::UnixEpoch());
  REQUIRE(offers.size() == 1);
  CHECK(offers[0].units == std::vector<OfferedUnit>{Mdev()});
  facts.mdev.instances.clear();
  plan.resources[0].units.clear();
  const auto later = MakeOffers(plan, facts, offers, {}, nullptr, absl::UnixEpoch());
  REQUIRE(later[0].units.size() == 1);
  CHECK_FALSE(later[0].units[0].healthy);
  CHECK(later[0].units[0].reason == "the mediated device is gone");
}

}  // namespace
}  // namespace vfio_agent
