#include "deviceplugin/status/status_server.h"

#include <utility>

#include "deviceplugin/grpc/descriptors.h"
#include "deviceplugin/grpc/health_watch.h"
#include "deviceplugin/grpc/reflection_stream.h"
#include "deviceplugin/grpc/unary_call.h"
#include "deviceplugin/grpc/unix_server.h"
#include "deviceplugin/status/status_message.h"
#include "proto/health.grpc.pb.h"
#include "proto/status.grpc.pb.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

namespace wire = status::v1;
namespace health = grpc::health::v1;

constexpr char kService[] = "vfio_agent.status.v1.Status";

}  // namespace

struct StatusServer::Running {
  explicit Running(Sources from) : sources(std::move(from)) {}

  absl::Status Listen(const std::string& path);
  void Serve(const QueueLease& queue);
  HealthWatch::State StateOf(const std::string& service) const;
  grpc::Status Check(const health::HealthCheckRequest& request,
                     health::HealthCheckResponse& response) const;

  const Sources sources;
  const Descriptors descriptors{ServedFiles()};
  wire::Status::AsyncService status_rpc;
  health::Health::AsyncService health_rpc;
  ReflectionStream::Rpc reflection_rpc;
  HealthWatch watch{health_rpc, [this](const std::string& service) { return StateOf(service); }};
  std::unique_ptr<UnixServer> server;  // ends before what it calls
};

absl::Status StatusServer::Running::Listen(const std::string& path) {
  ASSIGN_OR_RETURN(
      server, UnixServer::Start(path, {.rpcs = {&status_rpc, &health_rpc, &reflection_rpc},
                                       .serve = [this](const QueueLease& queue) { Serve(queue); },
                                       .turned_away = sources.turned_away,
                                       .tick = [this] { return watch.Tick(); }}));
  return absl::OkStatus();
}

void StatusServer::Running::Serve(const QueueLease& queue) {
  using StatusRpc = wire::Status::AsyncService;
  using HealthRpc = health::Health::AsyncService;
  UnaryCall<StatusRpc, wire::GetRequest, wire::AgentStatus>::Await(
      {status_rpc, queue, &StatusRpc::RequestGet,
       [this](const wire::GetRequest&, wire::AgentStatus& answer) {
         answer = ToMessage(*sources.status());
         return grpc::Status::OK;
       }});
  UnaryCall<HealthRpc, health::HealthCheckRequest, health::HealthCheckResponse>::Await(
      {health_rpc, queue, &HealthRpc::RequestCheck,
       [this](const health::HealthCheckRequest& request, health::HealthCheckResponse& answer) {
         return Check(request, answer);
       }});
  watch.Await(queue);
  ReflectionStream::Await(reflection_rpc, queue, descriptors);
}

HealthWatch::State StatusServer::Running::StateOf(const std::string& service) const {
  using Response = health::HealthCheckResponse;
  if (!service.empty() && service != kService) return Response::SERVICE_UNKNOWN;
  return sources.alive() ? Response::SERVING : Response::NOT_SERVING;
}

grpc::Status StatusServer::Running::Check(const health::HealthCheckRequest& request,
                                          health::HealthCheckResponse& response) const {
  response.set_status(StateOf(request.service()));
  if (response.status() != health::HealthCheckResponse::SERVICE_UNKNOWN) return grpc::Status::OK;
  return {grpc::StatusCode::NOT_FOUND, "no such service"};
}

StatusServer::StatusServer(std::unique_ptr<Running> running) : running_(std::move(running)) {}
StatusServer::~StatusServer() = default;

absl::StatusOr<std::unique_ptr<StatusServer>> StatusServer::Start(const std::string& path,
                                                                  Sources sources) {
  auto running = std::make_unique<Running>(std::move(sources));
  RETURN_IF_ERROR(running->Listen(path));
  return std::unique_ptr<StatusServer>(new StatusServer(std::move(running)));
}

}  // namespace vfio_agent
