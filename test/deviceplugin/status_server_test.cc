// The status socket as any gRPC client meets it: health that is watched, and reflection.
#include "deviceplugin/status/status_server.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>

#include "absl/time/clock.h"
#include "deviceplugin/grpc/channel.h"
#include "deviceplugin/grpc/descriptors.h"
#include "deviceplugin/grpc/quiet_grpc.h"
#include "proto/health.grpc.pb.h"
#include "proto/reflection.grpc.pb.h"
#include "test/deviceplugin/support.h"

namespace vfio_agent {
namespace {

namespace health = grpc::health::v1;
namespace reflection = grpc::reflection::v1alpha;

using Answer = health::HealthCheckResponse;
using Request = reflection::ServerReflectionRequest;
using Response = reflection::ServerReflectionResponse;

constexpr absl::Duration kLong = absl::Seconds(30);
constexpr char kStatus[] = "vfio_agent.status.v1.Status";

struct Stand {
  Stand() {
    quiet.StopTimers();  // as in the daemon: no timer of gRPC's tells anybody to look
    auto started =
        StatusServer::Start(dir.path() + "/status.sock",
                            {.status = [] { return std::make_shared<const AgentStatus>(); },
                             .alive = [this] { return alive.load(); },
                             .turned_away = [](const RefusedPeer&) {}});
    REQUIRE(started.ok());
    server = *std::move(started);
  }
  std::shared_ptr<grpc::Channel> Channel() const {
    const auto channel = Dial(dir.path() + "/status.sock");
    REQUIRE(channel.ok());
    return *channel;
  }

  QuietGrpc quiet;
  TempDir dir;
  std::atomic<bool> alive = true;
  std::unique_ptr<StatusServer> server;
};

struct Watching {
  Watching(const Stand& stand, const std::string& service) {
    context.set_deadline(absl::ToChronoTime(absl::Now() + kLong));
    health::HealthCheckRequest request;
    request.set_service(service);
    stub = health::Health::NewStub(stand.Channel());
    reader = stub->Watch(&context, request);
  }
  // The next that is told; UNKNOWN where the stream has ended.
  Answer::ServingStatus Next() {
    Answer answer;
    return reader->Read(&answer) ? answer.status() : Answer::UNKNOWN;
  }

  grpc::ClientContext context;
  std::unique_ptr<health::Health::Stub> stub;
  std::unique_ptr<grpc::ClientReader<Answer>> reader;
};

TEST_CASE("whoever watches the health is told at once, and again at each change", "[grpc]") {
  Stand stand;
  const std::string service = GENERATE(as<std::string>(), "", kStatus);
  CAPTURE(service);
  Watching watching(stand, service);
  CHECK(watching.Next() == Answer::SERVING);
  stand.alive = false;  // nobody tells: it is noticed
  CHECK(watching.Next() == Answer::NOT_SERVING);
  Watching second(stand, service);
  CHECK(second.Next() == Answer::NOT_SERVING);
  stand.alive = true;
  CHECK(watching.Next() == Answer::SERVING);
  CHECK(second.Next() == Answer::SERVING);
}

TEST_CASE("a probe is told whether the agent lives, and that a loop that hangs does not",
          "[grpc]") {
  Stand stand;
  const std::string socket = stand.dir.path() + "/status.sock";
  CHECK(FetchHealth(socket, kLong).ok());
  stand.alive = false;
  const absl::Status health = FetchHealth(socket, kLong);
  CHECK(absl::IsFailedPrecondition(health));
  CHECK_THAT(std::string(health.message()), Catch::Contains(socket));
  CHECK(absl::IsNotFound(FetchHealth(socket + "x", kLong)));
}

TEST_CASE("who watches a service that is not there is told so, and stays", "[grpc]") {
  const Stand stand;
  Watching watching(stand, "v1beta1.DevicePlugin");
  CHECK(watching.Next() == Answer::SERVICE_UNKNOWN);
  Watching other(stand, "");
  CHECK(other.Next() == Answer::SERVING);  // the first one holds nobody up
}

TEST_CASE("a server that ends does not wait for those who watch or ask", "[grpc]") {
  Stand stand;
  Watching watching(stand, "");
  REQUIRE(watching.Next() == Answer::SERVING);
  grpc::ClientContext context;
  const auto stub = reflection::ServerReflection::NewStub(stand.Channel());
  const auto stream = stub->ServerReflectionInfo(&context);
  Request request;
  request.set_list_services("");
  Response response;
  REQUIRE(stream->Write(request));
  REQUIRE(stream->Read(&response));
  const absl::Time start = absl::Now();
  stand.server.reset();
  CHECK(absl::Now() - start < absl::Seconds(10));
  CHECK(watching.Next() == Answer::UNKNOWN);
  CHECK_FALSE(stream->Read(&response));
}

TEST_CASE("a watcher that goes away leaves nothing behind that hinders the others", "[grpc]") {
  Stand stand;
  for (int i = 0; i < 20; ++i) {
    Watching watching(stand, "");
    REQUIRE(watching.Next() == Answer::SERVING);
    watching.context.TryCancel();
  }
  Watching last(stand, "");
  CHECK(last.Next() == Answer::SERVING);
  stand.alive = false;
  CHECK(last.Next() == Answer::NOT_SERVING);
}

TEST_CASE("reflection answers each request of a stream in its order", "[grpc]") {
  const Stand stand;
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kLong));
  const auto stub = reflection::ServerReflection::NewStub(stand.Channel());
  const auto stream = stub->ServerReflectionInfo(&context);
  for (const char* symbol : {kStatus, "grpc.health.v1.Health.Watch", "no.such.Thing"}) {
    Request request;
    request.set_file_containing_symbol(symbol);
    REQUIRE(stream->Write(request));
    Response response;
    REQUIRE(stream->Read(&response));
    CHECK(response.original_request().file_containing_symbol() == symbol);
    CHECK(response.has_error_response() == (std::string(symbol) == "no.such.Thing"));
  }
  REQUIRE(stream->WritesDone());
  CHECK(stream->Finish().ok());
}

TEST_CASE("every service, method, message, field, enum and value is found in its file",
          "[deviceplugin]") {
  const Descriptors descriptors{ServedFiles()};
  CHECK(descriptors.services() ==
        std::vector<std::string>{"grpc.health.v1.Health",
                                 "grpc.reflection.v1alpha.ServerReflection", kStatus});
  const auto file_of = [&descriptors](const std::string& symbol) {
    Request request;
    request.set_file_containing_symbol(symbol);
    const Response response = descriptors.Answer(request);
    if (response.has_error_response()) {
      CHECK(response.error_response().error_code() == grpc::StatusCode::NOT_FOUND);
      return std::string("none");
    }
    REQUIRE(response.file_descriptor_response().file_descriptor_proto_size() == 1);
    return response.file_descriptor_response().file_descriptor_proto(0);
  };
  Request by_name;
  by_name.set_file_by_filename("proto/health.proto");
  const std::string health_file =
      descriptors.Answer(by_name).file_descriptor_response().file_descriptor_proto(0);
  for (const char* symbol :
       {"grpc.health.v1.Health", "grpc.health.v1.Health.Check",
        "grpc.health.v1.HealthCheckResponse", "grpc.health.v1.HealthCheckResponse.status",
        "grpc.health.v1.HealthCheckResponse.ServingStatus",
        "grpc.health.v1.HealthCheckResponse.SERVING"}) {
    CAPTURE(symbol);
    CHECK(file_of(symbol) == health_file);
  }
  CHECK(file_of("vfio_agent.status.v1.Unit.pods") != health_file);
  for (const char* symbol : {"", "grpc.health.v1", "v1beta1.DevicePlugin",
                             "grpc.health.v1.HealthCheckResponse.ServingStatus.SERVING"}) {
    CHECK(file_of(symbol) == "none");
  }
}

TEST_CASE("descriptors that cannot be read are none", "[deviceplugin]") {
  const Descriptors descriptors{"\x0a\xff no"};
  CHECK(descriptors.services().empty());
  CHECK(descriptors.Answer({}).error_response().error_code() == grpc::StatusCode::INVALID_ARGUMENT);
}

}  // namespace
}  // namespace vfio_agent
