#include "deviceplugin/status_server.h"

#include <utility>

#include "deviceplugin/status_message.h"
#include "deviceplugin/unary_call.h"
#include "deviceplugin/unix_server.h"
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
  grpc::Status Check(const health::HealthCheckRequest& request,
                     health::HealthCheckResponse& response) const;

  const Sources sources;
  wire::Status::AsyncService status_rpc;
  health::Health::AsyncService health_rpc;
  std::unique_ptr<UnixServer> server;  // ends before what it calls
};

absl::Status StatusServer::Running::Listen(const std::string& path) {
  ASSIGN_OR_RETURN(
      server, UnixServer::Start(path, {.rpcs = {&status_rpc, &health_rpc},
                                       .serve = [this](const QueueLease& queue) { Serve(queue); },
                                       .turned_away = sources.turned_away}));
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
}

grpc::Status StatusServer::Running::Check(const health::HealthCheckRequest& request,
                                          health::HealthCheckResponse& response) const {
  if (!request.service().empty() && request.service() != kService) {
    return {grpc::StatusCode::NOT_FOUND, "no such service"};
  }
  response.set_status(sources.alive() ? health::HealthCheckResponse::SERVING
                                      : health::HealthCheckResponse::NOT_SERVING);
  return grpc::Status::OK;
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
