// The fake kubelet itself: the behaviours for which the plugins' rules exist.
#include "test/kubelet/fake_kubelet.h"

#include <grpcpp/client_context.h>

#include <filesystem>
#include <fstream>
#include <future>

#include "absl/time/clock.h"
#include "catch2/catch.hpp"
#include "deviceplugin/grpc/channel.h"
#include "deviceplugin/kubelet/register_call.h"
#include "deviceplugin/kubelet/server.h"
#include "proto/podresources_v1.grpc.pb.h"
#include "test/deviceplugin/support.h"

namespace vfio_agent {
namespace {

using Generation = FakeKubelet::Generation;

constexpr char kName[] = "nvidia.com/X";

// Two servers of one resource, as two agents that overlap would have them.
struct Overlap {
  explicit Overlap(Generation generation) : kubelet({.dir = dir.path(), .generation = generation}) {
    published.Set(TestOffer(kName, {TestUnit("0000:11:00.0")}));
    REQUIRE(kubelet.Start().ok());
  }

  std::unique_ptr<PluginServer> Serve(const std::string& name) {
    return *PluginServer::Start(dir.path() + "/" + name,
                                std::make_unique<DevicePluginService>(
                                    published, node.tree(), AskDrivers(), ledger, [](auto) {}));
  }
  absl::Status Register(const std::string& endpoint, const std::string& resource = kName) {
    absl::Status answer;
    {
      const auto called = std::make_shared<std::promise<void>>();
      const auto call = RegisterCall::Start(dir.path() + "/kubelet.sock", resource, endpoint,
                                            [&answer, called](const absl::Status& status) {
                                              answer = status;
                                              called->set_value();
                                            });
      called->get_future().wait();
    }
    return answer;
  }
  bool WaitFor(const std::function<bool(const FakeResource&)>& wanted) {
    return kubelet.WaitFor(
        [&](const FakeResources& resources) {
          return resources.contains(kName) && wanted(resources.at(kName));
        },
        absl::Seconds(10));
  }

  TempDir dir;
  UnitTree node;
  Published published;
  Ledger ledger;
  FakeKubelet kubelet;
};

TEST_CASE("T1: up to 1.36 the end of the old stream takes the new plugin down", "[kubelet][grpc]") {
  Overlap overlap(Generation::k136);
  auto old = overlap.Serve("old.sock");
  REQUIRE(overlap.Register("old.sock").ok());
  REQUIRE(overlap.WaitFor([](const FakeResource& it) { return it.Healthy() == 1; }));
  const auto next = overlap.Serve("new.sock");
  REQUIRE(overlap.Register("new.sock").ok());
  REQUIRE(overlap.WaitFor([](const FakeResource& it) { return it.messages == 2; }));
  old.reset();
  CHECK(overlap.WaitFor([](const FakeResource& it) { return it.stopped && it.Healthy() == 0; }));
  CHECK_FALSE(overlap.kubelet.Allocate(kName, {"0000:11:00.0"}).ok());
}

TEST_CASE("from 1.37 on the end of the old stream leaves the new plugin alone", "[kubelet][grpc]") {
  Overlap overlap(Generation::k137);
  auto old = overlap.Serve("old.sock");
  REQUIRE(overlap.Register("old.sock").ok());
  REQUIRE(overlap.WaitFor([](const FakeResource& it) { return it.Healthy() == 1; }));
  const auto next = overlap.Serve("new.sock");
  REQUIRE(overlap.Register("new.sock").ok());
  REQUIRE(overlap.WaitFor([](const FakeResource& it) { return it.messages == 2; }));
  next->EndStreams();
  CHECK(overlap.WaitFor([](const FakeResource& it) { return it.endpoint == "old.sock"; }));
  CHECK(overlap.kubelet.Resources().at(kName).Healthy() == 1);
}

TEST_CASE("T2: from 1.37 on a known socket is answered OK and ignored", "[kubelet][grpc]") {
  Overlap overlap(Generation::k137);
  const auto server = overlap.Serve("same.sock");
  REQUIRE(overlap.Register("same.sock").ok());
  REQUIRE(overlap.WaitFor([](const FakeResource& it) { return it.messages == 1; }));
  REQUIRE(overlap.Register("same.sock").ok());
  overlap.published.Set(TestOffer(kName, {}));
  REQUIRE(overlap.WaitFor([](const FakeResource& it) { return it.devices.empty(); }));
  CHECK(overlap.kubelet.Resources().at(kName).messages == 2);
  CHECK(overlap.kubelet.Resources().at(kName).registrations == 2);
}

TEST_CASE("a registration that the kubelet cannot take tells why", "[kubelet][grpc]") {
  Overlap overlap(Generation::k136);
  CHECK_THAT(std::string(overlap.Register("x.sock", "NVIDIA.com/X").message()),
             Catch::Contains("the ResourceName \"NVIDIA.com/X\" is invalid"));
  FakeKubelet impatient({.dir = overlap.dir.path(), .dial_timeout = absl::Milliseconds(100)});
  overlap.kubelet.Stop();
  REQUIRE(impatient.Start().ok());
  CHECK(std::string(overlap.Register("absent.sock").message()) ==
        "failed to dial device plugin: context deadline exceeded");
}

TEST_CASE("R5: names are judged as the kubelet judges them", "[kubelet]") {
  const std::string good = GENERATE(as<std::string>(), "nvidia.com/GH100_H100_SXM5_80GB", "a/b",
                                    "x.y-z.org/A.b-c_d", "n.io/" + std::string(63, 'x'));
  CHECK(CheckResourceName(good).empty());
  const std::string bad = GENERATE(
      as<std::string>(), "gpu", "NVIDIA.com/x", "nvidia.com/", "nvidia.com/_x", "nvidia.com/x-",
      "nvidia.com/a b", "requests.nvidia.com/x", "kubernetes.io/x", "x.kubernetes.io/y",
      "nvidia.com/a/b", "n.io/" + std::string(64, 'x'), std::string(245, 'd') + "/x");
  CHECK_FALSE(CheckResourceName(bad).empty());
}

TEST_CASE("one pod is told by its name, and an unknown one is not found", "[kubelet][grpc]") {
  TempDir dir;
  FakeKubelet kubelet({.dir = dir.path(), .root_dir = dir.path()});
  REQUIRE(kubelet.Start().ok());
  kubelet.SetPod("vms", "a", "compute", kName, {"0000:11:00.0"});
  const auto stub =
      v1::PodResourcesLister::NewStub(*Dial(dir.path() + "/pod-resources/kubelet.sock"));
  const auto ask = [&](const char* name, v1::GetPodResourcesResponse& response) {
    grpc::ClientContext context;
    v1::GetPodResourcesRequest request;
    request.set_pod_namespace("vms");
    request.set_pod_name(name);
    return stub->Get(&context, request, &response);
  };
  v1::GetPodResourcesResponse response;
  REQUIRE(ask("a", response).ok());
  CHECK(response.pod_resources().name() == "a");
  CHECK(response.pod_resources().containers(0).devices(0).device_ids(0) == "0000:11:00.0");
  CHECK(ask("b", response).error_code() == grpc::StatusCode::NOT_FOUND);
}

TEST_CASE("T5: a start sweeps sockets, and up to 1.32 every file but the checkpoint",
          "[kubelet][grpc]") {
  TempDir dir;
  const auto exists = [&](const char* name) {
    return std::filesystem::exists(dir.path() + "/" + name);
  };
  std::ofstream(dir.path() + "/note") << "x";
  std::ofstream(dir.path() + "/kubelet_internal_checkpoint") << "x";
  std::filesystem::create_directory(dir.path() + "/folder");
  Published published;
  UnitTree node;
  Ledger ledger;
  const auto server = *PluginServer::Start(
      dir.path() + "/plugin.sock", std::make_unique<DevicePluginService>(
                                       published, node.tree(), AskDrivers(), ledger, [](auto) {}));
  const bool all = GENERATE(false, true);
  FakeKubelet kubelet(
      {.dir = dir.path(),
       .sweep = all ? FakeKubelet::Sweep::kAllFiles : FakeKubelet::Sweep::kSockets});
  REQUIRE(kubelet.Start().ok());
  CHECK_FALSE(exists("plugin.sock"));
  CHECK(exists("note") == !all);
  CHECK(exists("kubelet_internal_checkpoint"));
  CHECK(exists("folder"));
  CHECK(exists("kubelet.sock"));
}

}  // namespace
}  // namespace vfio_agent
