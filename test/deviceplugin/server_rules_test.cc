// The kubelet's rules about servers and Register, as the kubelet sees them.
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <future>

#include "absl/time/clock.h"
#include "catch2/catch.hpp"
#include "deviceplugin/kubelet/server.h"
#include "test/deviceplugin/plugin_node.h"

namespace vfio_agent {
namespace {

using Generation = FakeKubelet::Generation;

TEST_CASE(
    "R1, R3, R9, R20: the Register call is complete, patient, and made by a plugin that listens",
    "[deviceplugin][grpc]") {
  PluginNode node({.generation = GENERATE(Generation::k136, Generation::k137)});
  REQUIRE(node.kubelet.Start().ok());
  REQUIRE(node.Serves());
  REQUIRE(node.kubelet.RegisterCalls().size() == 1);
  const FakeRegisterCall call = node.kubelet.RegisterCalls()[0];
  CHECK(call.listening);
  CHECK(call.request.version() == "v1beta1");
  CHECK(call.request.resource_name() == kGpu);
  CHECK(call.request.endpoint() == std::filesystem::path(node.Socket()).filename().string());
  CHECK(call.patience >= absl::Seconds(12));
  CHECK(call.request.options().pre_start_required() == call.options.pre_start_required());
  CHECK(call.request.options().get_preferred_allocation_available() ==
        call.options.get_preferred_allocation_available());
  CHECK(call.options.pre_start_required());
}

TEST_CASE("R2, R23: while Register is under way the plugin answers, and sends its list",
          "[deviceplugin][grpc]") {
  PluginNode node({.generation = GENERATE(Generation::k136, Generation::k137)});
  std::promise<int> listed;
  // Kept until all is seen: the end of a stream tells of a kubelet that has gone.
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReader<v1beta1::ListAndWatchResponse>> stream;
  node.kubelet.DuringRegister([&](FakeKubelet::Stub& plugin) {
    v1beta1::ListAndWatchResponse list;
    stream = plugin.ListAndWatch(&context, v1beta1::Empty());
    listed.set_value(stream->Read(&list) ? list.devices_size() : -1);
  });
  REQUIRE(node.kubelet.Start().ok());
  REQUIRE(node.Serves());
  CHECK(listed.get_future().get() == 1);
  CHECK(node.Registrations() == 1);
  context.TryCancel();
}

TEST_CASE("R4: the methods are found under the names that the kubelet calls",
          "[deviceplugin][grpc]") {
  CHECK(std::string(v1beta1::Registration::service_full_name()) == "v1beta1.Registration");
  CHECK(std::string(v1beta1::DevicePlugin::service_full_name()) == "v1beta1.DevicePlugin");
  PluginNode node;
  REQUIRE(node.loop.RunUntil([&] { return !node.Socket().empty(); }));
  grpc::GenericStub stub(
      grpc::CreateChannel("unix:" + node.Socket(), grpc::InsecureChannelCredentials()));
  const auto call = [&stub](const std::string& method) {
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    const grpc::Slice empty;
    const auto reader =
        stub.PrepareUnaryCall(&context, method, grpc::ByteBuffer(&empty, 1), &queue);
    grpc::ByteBuffer response;
    grpc::Status status;
    reader->StartCall();
    reader->Finish(&response, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    return status.error_code();
  };
  CHECK(call("/v1beta1.DevicePlugin/GetDevicePluginOptions") == grpc::StatusCode::OK);
  CHECK(call("/v1.DevicePlugin/GetDevicePluginOptions") == grpc::StatusCode::UNIMPLEMENTED);
  // Who registers by calling is not to be found as well.
  CHECK(call("/pluginregistration.Registration/GetInfo") == grpc::StatusCode::UNIMPLEMENTED);
}

// Sets a variable for as long as it lives. Nothing else of this process runs yet.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* const name_;
};

TEST_CASE("R61: a proxy in the environment is not asked for a unix socket",
          "[deviceplugin][grpc]") {
  const Variable http("http_proxy", "http://127.0.0.1:1");
  const Variable https("https_proxy", "http://127.0.0.1:1");
  const Variable grpc("grpc_proxy", "http://127.0.0.1:1");
  PluginNode node;
  REQUIRE(node.kubelet.Start().ok());
  CHECK(node.Serves());
}

TEST_CASE("R22, R61: a shutdown ends although a stream never ends by itself",
          "[deviceplugin][grpc]") {
  PluginNode node({.generation = GENERATE(Generation::k136, Generation::k137)});
  REQUIRE(node.kubelet.Start().ok());
  REQUIRE(node.Serves());
  const absl::Time start = absl::Now();
  node.loop.plugins().Shutdown(absl::Seconds(5));
  CHECK(absl::Now() - start < absl::Seconds(5));
  // T4: to the kubelet a clean end is an end.
  CHECK(node.kubelet.WaitFor(
      [](const FakeResources& resources) { return resources.at(kGpu).stopped; },
      absl::Seconds(10)));
}

TEST_CASE("R61: a stream on which the kubelet pings goes on", "[deviceplugin][grpc]") {
  TempDir dir;
  UnitTree tree;
  Ledger ledger;
  Published published;
  published.Set(TestOffer(kGpu, {TestUnit("0000:11:00.0")}));
  const auto server = *PluginServer::Start(
      dir.path() + "/x.sock",
      std::make_unique<DevicePluginService>(published, tree.tree(), AskDrivers(), ledger,
                                            [](const ServiceEvent&) {}));
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  const auto channel = grpc::CreateCustomChannel("unix:" + server->path(),
                                                 grpc::InsecureChannelCredentials(), arguments);
  const auto stub = v1beta1::DevicePlugin::NewStub(channel);
  grpc::ClientContext context;
  const auto stream = stub->ListAndWatch(&context, v1beta1::Empty());
  v1beta1::ListAndWatchResponse list;
  REQUIRE(stream->Read(&list));
  // Some thirty pings: gRPC hangs up at the third where it is not told otherwise.
  CHECK_FALSE(channel->WaitForStateChange(
      GRPC_CHANNEL_READY, absl::ToChronoTime(absl::Now() + absl::Milliseconds(300))));
  published.Set(TestOffer(kGpu, {}));
  REQUIRE(stream->Read(&list));
  CHECK(list.devices_size() == 0);
  context.TryCancel();
}

}  // namespace
}  // namespace vfio_agent
