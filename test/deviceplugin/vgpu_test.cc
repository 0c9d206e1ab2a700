// Units that are virtual functions with a vGPU type: what is answered, and what is looked at
// before.
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <filesystem>
#include <fstream>

#include "catch2/catch.hpp"
#include "deviceplugin/kubelet/server.h"
#include "deviceplugin/kubelet/service.h"
#include "deviceplugin/offer/allocate.h"
#include "deviceplugin/offer/ledger.h"
#include "deviceplugin/offer/verify.h"
#include "test/deviceplugin/support.h"
#include "test/support/facts.h"

namespace vfio_agent {
namespace {

namespace fs = std::filesystem;

constexpr char kResource[] = "nvidia.com/NVIDIA_L40S-1B";
constexpr char kVf[] = "0000:41:00.4";

OfferedUnit Vgpu() {
  return {.id = kVf,
          .addresses = {kVf},
          .group = 40,
          .members = {kVf},
          .nodes = {"/dev/vfio/vfio", "/dev/vfio/40"},
          .healthy = true,
          .vgpu_type = "1145"};
}

// The node of that unit, as the kernel has it.
struct VgpuTree {
  VgpuTree() {
    fs::create_directories(Device() + "/nvidia");
    Type("1145\n");
    Link("iommu_group", "x/40");
    Link("driver", "x/nvidia");
    Link("physfn", "x/0000:41:00.0");
    fs::create_directories(dir.path() + "/dev/vfio");
    for (const char* node : {"vfio", "40"}) std::ofstream(dir.path() + "/dev/vfio/" + node) << "";
  }
  std::string Device() const { return dir.path() + "/sys/bus/pci/devices/" + kVf; }
  void Type(const std::string& text) const {
    std::ofstream(Device() + "/nvidia/current_vgpu_type") << text;
  }
  void Link(const std::string& name, const std::string& target) const {
    fs::remove(Device() + "/" + name);
    if (!target.empty()) fs::create_symlink(target, Device() + "/" + name);
  }
  std::string Verify() const {
    return std::string(VerifyUnit(*Tree::Open(dir.path()), Vgpu()).message());
  }
  TempDir dir;
};

TEST_CASE("VGPU: a vGPU's address is in the variable for PCI devices", "[deviceplugin]") {
  const IndexedOffer offer(TestOffer(kResource, {Vgpu()}));
  const auto units = FindUnits(offer, {kVf});
  REQUIRE(units.ok());
  const auto answer = MakeAllocation(offer.offer(), *units);
  CHECK(answer.envs_size() == 1);
  CHECK(answer.envs().at("PCI_RESOURCE_NVIDIA_COM_NVIDIA_L40S-1B") == kVf);
}

TEST_CASE("VGPU: a vGPU is given on its vendor's driver, unless it has changed", "[deviceplugin]") {
  const VgpuTree node;
  REQUIRE(node.Verify().empty());
  const std::string unit = std::string(kVf) + ": ";
  SECTION("another type") {
    node.Type("1153\n");
    CHECK(node.Verify() == unit + "driver-changed: its vGPU type is 1153 now, was 1145");
  }
  SECTION("no type") {
    node.Type("0\n");
    CHECK_THAT(node.Verify(), Catch::EndsWith("its vGPU type is 0 now, was 1145"));
  }
  SECTION("a driver that gives none") {
    fs::remove_all(node.Device() + "/nvidia");
    CHECK_THAT(node.Verify(), Catch::EndsWith("its vGPU type is unknown now, was 1145"));
  }
  SECTION("no driver") {
    node.Link("driver", "");
    CHECK(node.Verify() == unit + "driver-changed: it is bound to no driver");
  }
  SECTION("another group") {
    node.Link("iommu_group", "x/41");
    CHECK_THAT(node.Verify(), Catch::Contains("group-changed") && Catch::Contains("41 now"));
  }
  SECTION("gone") {
    fs::remove_all(node.Device());
    CHECK_THAT(node.Verify(), Catch::StartsWith(unit + "device-gone"));
  }
  SECTION("without its node") {
    fs::remove(node.dir.path() + "/dev/vfio/40");
    CHECK_THAT(node.Verify(), Catch::Contains("node-missing"));
  }
}

TEST_CASE("VGPU: where one function of a card hangs, so do the others", "[deviceplugin]") {
  const VgpuTree node;
  const auto hangs = [](const std::vector<DriverFile>& files) {
    REQUIRE(files.size() == 1);
    CHECK(files[0].device.ToString() == kVf);
    CHECK(files[0].card.ToString() == "0000:41:00.0");
    return DriverTexts{{files[0].path, Silence(files[0].path)}};
  };
  CHECK_THAT(std::string(VerifyUnit(*Tree::Open(node.dir.path()), Vgpu(), hangs).message()),
             Catch::Contains("its driver does not answer"));
  node.Link("physfn", "");
  CHECK_THAT(node.Verify(), Catch::Contains("it is no virtual function any more"));
}

TEST_CASE("VGPU: a vGPU that loses its type stays listed as unhealthy", "[deviceplugin]") {
  NodeFacts facts = Node({Vf(kVf, 40, "0000:41:00.0")});
  facts.vfio_nodes = {"vfio", "40"};
  Plan plan;
  plan.resources = {{.name = kResource,
                     .units = {{.id = kVf,
                                .primary = At(kVf),
                                .addresses = {At(kVf)},
                                .group = 40,
                                .state = UnitState::kReady,
                                .vgpu_type = "1145"}}}};
  const auto offers = MakeOffers(plan, facts, {}, {}, nullptr, absl::UnixEpoch());
  REQUIRE(offers.size() == 1);
  CHECK(offers[0].units == std::vector<OfferedUnit>{Vgpu()});
  plan.resources.clear();
  const auto later = MakeOffers(plan, facts, offers, {}, nullptr, absl::UnixEpoch());
  CHECK_FALSE(later.at(0).units.at(0).healthy);
  CHECK(later[0].units[0].reason == "it is no vGPU of this type any more, or not selected");
}

TEST_CASE("R38: what stands for something else since it was looked at is not given",
          "[deviceplugin][grpc]") {
  const VgpuTree node;
  const Tree tree = *Tree::Open(node.dir.path());
  Published published;
  published.Set(TestOffer(kResource, {Vgpu()}));
  const bool changes = GENERATE(false, true);
  const AskDrivers ask = [&](const std::vector<DriverFile>& files) {
    OfferedUnit other = Vgpu();
    if (changes) other.nodes.emplace_back("/dev/vfio/devices/vfio7");
    other.holder = "pod team/vm (container compute)";
    published.Set(TestOffer(kResource, {other}));
    return AskInTurn(tree)(files);
  };
  Ledger ledger;
  const auto server = *PluginServer::Start(
      node.dir.path() + "/x.sock", std::make_unique<DevicePluginService>(
                                       published, tree, ask, ledger, [](const ServiceEvent&) {}));
  const auto stub = v1beta1::DevicePlugin::NewStub(
      grpc::CreateChannel("unix:" + server->path(), grpc::InsecureChannelCredentials()));
  v1beta1::AllocateRequest request;
  request.add_container_requests()->add_devices_ids(kVf);
  grpc::ClientContext context;
  v1beta1::AllocateResponse response;
  const grpc::Status status = stub->Allocate(&context, request, &response);
  server->Shutdown(absl::InfinitePast());
  CHECK(status.ok() == !changes);
  CHECK(ledger.Grants().empty() == changes);
  if (changes) CHECK_THAT(status.error_message(), Catch::Contains("0000:41:00.4: group-changed"));
}

}  // namespace
}  // namespace vfio_agent
