// The DevicePlugin service through a real connection, without a kubelet.
#include "deviceplugin/kubelet/service.h"

#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <filesystem>
#include <mutex>

#include "absl/time/clock.h"
#include "catch2/catch.hpp"
#include "deviceplugin/kubelet/server.h"
#include "deviceplugin/offer/ledger.h"
#include "test/deviceplugin/support.h"

namespace vfio_agent {
namespace {

using Kind = ServiceEvent::Kind;
using List = v1beta1::ListAndWatchResponse;

// A server for one resource with one unit, and the events that it told.
struct Served {
  Served() {
    const Offer offer = TestOffer("nvidia.com/X", {TestUnit("0000:11:00.0")});
    node.AddAll(offer);
    published.Set(offer);
    auto observer = [this](ServiceEvent event) {
      const std::scoped_lock lock(mutex);
      events.push_back(std::move(event));
    };
    server = *PluginServer::Start(dir.path() + "/x.sock",
                                  std::make_unique<DevicePluginService>(
                                      published, node.tree(), AskDrivers(), ledger, observer));
  }
  ~Served() { server->Shutdown(absl::InfinitePast()); }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;

  std::unique_ptr<v1beta1::DevicePlugin::Stub> Connect() const {
    return v1beta1::DevicePlugin::NewStub(
        grpc::CreateChannel("unix:" + server->path(), grpc::InsecureChannelCredentials()));
  }
  void SetHealthy(bool healthy) {
    Offer offer = published.Get()->offer();
    offer.units[0].healthy = healthy;
    published.Set(offer);
  }
  // Waits until so many events of the kind were told.
  bool Told(Kind kind, int count) {
    const absl::Time end = absl::Now() + absl::Seconds(10);
    for (;;) {
      {
        const std::scoped_lock lock(mutex);
        if (std::ranges::count(events, kind, &ServiceEvent::kind) == count) return true;
      }
      if (absl::Now() > end) return false;
      absl::SleepFor(absl::Milliseconds(1));
    }
  }

  TempDir dir;
  UnitTree node;
  Published published;
  Ledger ledger;
  std::mutex mutex;
  std::vector<ServiceEvent> events;
  std::unique_ptr<PluginServer> server;
};

// An open ListAndWatch call; cancelled when it goes.
struct Watcher {
  explicit Watcher(v1beta1::DevicePlugin::Stub& stub)
      : stream(stub.ListAndWatch(&context, v1beta1::Empty())) {}
  ~Watcher() {
    context.TryCancel();
    while (stream->Read(&list)) {
    }
    stream->Finish();  // cancelled, or ended by the server: both are expected
  }
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
  // The health in the next list; "end" where the stream is over.
  std::string Next() { return stream->Read(&list) ? list.devices(0).health() : "end"; }

  grpc::ClientContext context;
  List list;
  std::unique_ptr<grpc::ClientReader<List>> stream;
};

TEST_CASE("R35: the options announce what is implemented", "[deviceplugin][grpc]") {
  Served served;
  grpc::ClientContext context;
  v1beta1::DevicePluginOptions options;
  REQUIRE(served.Connect()->GetDevicePluginOptions(&context, v1beta1::Empty(), &options).ok());
  CHECK(options.pre_start_required());
  CHECK(options.get_preferred_allocation_available());
}

TEST_CASE("R13: every open stream gets the list at once and every change", "[deviceplugin][grpc]") {
  Served served;
  const auto stub = served.Connect();
  Watcher first(*stub);
  CHECK(first.Next() == "Healthy");
  served.SetHealthy(false);
  CHECK(first.Next() == "Unhealthy");
  {
    Watcher second(*stub);
    CHECK(second.Next() == "Unhealthy");
    served.SetHealthy(true);
    CHECK(second.Next() == "Healthy");
    CHECK(first.Next() == "Healthy");
    CHECK(served.Told(Kind::kListOpened, 2));
  }
  CHECK(served.Told(Kind::kListClosed, 1));
  served.SetHealthy(false);
  CHECK(first.Next() == "Unhealthy");
}

TEST_CASE("a stream that is slow to read gets the newest list and not every one before",
          "[deviceplugin][grpc]") {
  Served served;
  const auto stub = served.Connect();
  Watcher watcher(*stub);
  CHECK(watcher.Next() == "Healthy");
  // Each list is some 100 kB, so only a few fit between us and a reader that does not read.
  Offer large = TestOffer("nvidia.com/X", {});
  for (int i = 0; i < 4096; ++i) large.units.push_back(TestUnit("0000:11:00.0"));
  constexpr int kChanges = 200;
  for (int i = 1; i <= kChanges; ++i) {
    large.units[0].healthy = i % 2 != 0;
    large.units[1].healthy = i == kChanges;
    served.published.Set(large);
  }
  int lists = 0;
  do {
    REQUIRE(watcher.stream->Read(&watcher.list));
    ++lists;
  } while (watcher.list.devices(1).health() != "Healthy");
  CHECK(watcher.list.devices(0).health() == "Unhealthy");
  CHECK(lists < kChanges / 2);
}

TEST_CASE("R36: each container of a request is answered, in order", "[deviceplugin][grpc]") {
  Served served;
  Offer offer = TestOffer("nvidia.com/X", {TestUnit("0000:11:00.0"), TestUnit("0000:12:00.0")});
  served.node.AddAll(offer);
  served.published.Set(offer);
  v1beta1::AllocateRequest request;
  request.add_container_requests()->add_devices_ids("0000:12:00.0");
  request.add_container_requests()->add_devices_ids("0000:11:00.0");
  grpc::ClientContext context;
  v1beta1::AllocateResponse response;
  REQUIRE(served.Connect()->Allocate(&context, request, &response).ok());
  REQUIRE(response.container_responses_size() == 2);
  CHECK(response.container_responses(0).envs().at("PCI_RESOURCE_NVIDIA_COM_X") == "0000:12:00.0");
  CHECK(response.container_responses(1).envs().at("PCI_RESOURCE_NVIDIA_COM_X") == "0000:11:00.0");
  CHECK(served.Told(Kind::kAllocated, 1));
}

TEST_CASE("R49: a preference that cannot be met is an empty answer and no error",
          "[deviceplugin][grpc]") {
  Served served;
  v1beta1::PreferredAllocationRequest request;
  for (const int size : {-1, 0, 5}) {
    auto& container = *request.add_container_requests();
    container.add_available_deviceids("0000:11:00.0");
    container.set_allocation_size(size);
  }
  grpc::ClientContext context;
  v1beta1::PreferredAllocationResponse response;
  REQUIRE(served.Connect()->GetPreferredAllocation(&context, request, &response).ok());
  REQUIRE(response.container_responses_size() == 3);
  for (const auto& answer : response.container_responses()) CHECK(answer.deviceids().empty());
}

TEST_CASE("R50: a container is not started on a unit that is not what it was",
          "[deviceplugin][grpc]") {
  Served served;
  const auto stub = served.Connect();
  const auto start = [&](const std::string& id) {
    v1beta1::PreStartContainerRequest request;
    request.add_devices_ids(id);
    grpc::ClientContext context;
    v1beta1::PreStartContainerResponse response;
    return stub->PreStartContainer(&context, request, &response);
  };
  CHECK(start("0000:11:00.0").ok());
  CHECK(start("0000:11:00.0").ok());
  CHECK(start("0000:12:00.0").error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  served.node.SetGroup("0000:11:00.0", 99);
  const grpc::Status moved = start("0000:11:00.0");
  CHECK(moved.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
  CHECK_THAT(moved.error_message(), Catch::Contains("nvidia.com/X") && Catch::Contains("group 99"));
  CHECK(served.Told(Kind::kPreStartRefused, 2));
}

TEST_CASE("R50: a container starts with what is kept for it, or was given since the list was made",
          "[deviceplugin][grpc]") {
  Served served;
  const auto stub = served.Connect();
  const auto allocate = [&] {
    v1beta1::AllocateRequest request;
    request.add_container_requests()->add_devices_ids("0000:11:00.0");
    grpc::ClientContext context;
    v1beta1::AllocateResponse response;
    return stub->Allocate(&context, request, &response).ok();
  };
  const auto start = [&] {
    v1beta1::PreStartContainerRequest request;
    request.add_devices_ids("0000:11:00.0");
    grpc::ClientContext context;
    v1beta1::PreStartContainerResponse response;
    return stub->PreStartContainer(&context, request, &response).ok();
  };
  REQUIRE(allocate());
  served.SetHealthy(false);  // by a look from before
  CHECK_FALSE(allocate());
  CHECK(start());
  served.ledger.Told(served.ledger.turn());
  CHECK_FALSE(start());
  Offer offer = served.published.Get()->offer();
  offer.units[0].kept = true;
  served.published.Set(offer);
  CHECK(start());
  CHECK_FALSE(allocate());
}

TEST_CASE("streams that are ended end cleanly, and later ones at once", "[deviceplugin][grpc]") {
  Served served;
  const auto stub = served.Connect();
  Watcher watcher(*stub);
  CHECK(watcher.Next() == "Healthy");
  served.server->EndStreams();
  CHECK(watcher.Next() == "end");
  Watcher late(*stub);
  while (late.Next() != "end") {
  }
  CHECK(served.Told(Kind::kListClosed, 2));
}

TEST_CASE("a server ends in good order whose connection breaks at that moment",
          "[deviceplugin][grpc]") {
  for (int round = 0; round < 30; ++round) {
    Served served;
    {
      Watcher watcher(*served.Connect());
      REQUIRE(watcher.Next() == "Healthy");
    }
    served.server->Shutdown(absl::InfinitePast());
    CHECK(served.Told(Kind::kListClosed, 1));
  }
}

TEST_CASE("a server that cannot listen says where", "[deviceplugin][grpc]") {
  SilenceGrpc();
  Served served;
  const auto start = [&](const std::string& path) {
    return PluginServer::Start(path, std::make_unique<DevicePluginService>(
                                         served.published, served.node.tree(), AskDrivers(),
                                         served.ledger, [](auto) {}))
        .status();
  };
  const absl::Status absent = start(served.dir.path() + "/absent/x.sock");
  CHECK_THAT(std::string(absent.message()), Catch::Contains("/absent/x.sock: No such file"));
  std::filesystem::create_directory(served.dir.path() + "/taken");
  const absl::Status taken = start(served.dir.path() + "/taken");
  CHECK_THAT(std::string(taken.message()), Catch::Contains("/taken: Is a directory"));
}

}  // namespace
}  // namespace vfio_agent
