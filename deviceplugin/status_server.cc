#include "deviceplugin/status_server.h"

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>

#include <thread>
#include <utility>

#include "absl/strings/str_format.h"
#include "deviceplugin/completion.h"
#include "deviceplugin/status_message.h"
#include "deviceplugin/unary_call.h"
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
  ~Running() { Shutdown(); }

  absl::Status Listen(const std::string& path);
  void Serve();
  void HandleCalls();
  void Shutdown();
  grpc::Status Check(const health::HealthCheckRequest& request,
                     health::HealthCheckResponse& response) const;

  const Sources sources;
  wire::Status::AsyncService status_rpc;
  health::Health::AsyncService health_rpc;
  std::unique_ptr<grpc::ServerCompletionQueue> queue;
  QueueLease lease;
  std::unique_ptr<grpc::Server> server;
  std::thread thread;  // sleeps in the queue
  std::unique_ptr<Listener> listener;
};

// Without a port of its own, as the plugins' servers: the listener knows who connects.
absl::Status StatusServer::Running::Listen(const std::string& path) {
  grpc::ServerBuilder builder;
  builder.RegisterService(&status_rpc);
  builder.RegisterService(&health_rpc);
  queue = builder.AddCompletionQueue();
  lease = LeaseOut(*queue);
  server = builder.BuildAndStart();
  if (server == nullptr) {
    lease.reset();
    HandleCalls();  // a queue must be read empty before it ends
    return absl::UnavailableError(absl::StrFormat("cannot serve %s", path));
  }
  Serve();
  auto accepted = [this](int fd) { grpc::AddInsecureChannelFromFd(server.get(), fd); };
  ASSIGN_OR_RETURN(listener, Listener::Start(path, {std::move(accepted), sources.turned_away}));
  return absl::OkStatus();
}

void StatusServer::Running::Serve() {
  using StatusRpc = wire::Status::AsyncService;
  using HealthRpc = health::Health::AsyncService;
  UnaryCall<StatusRpc, wire::GetRequest, wire::AgentStatus>::Await(
      {status_rpc, lease, &StatusRpc::RequestGet,
       [this](const wire::GetRequest&, wire::AgentStatus& answer) {
         answer = ToMessage(*sources.status());
         return grpc::Status::OK;
       }});
  UnaryCall<HealthRpc, health::HealthCheckRequest, health::HealthCheckResponse>::Await(
      {health_rpc, lease, &HealthRpc::RequestCheck,
       [this](const health::HealthCheckRequest& request, health::HealthCheckResponse& answer) {
         return Check(request, answer);
       }});
  thread = std::thread([this] { HandleCalls(); });
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

void StatusServer::Running::HandleCalls() {
  void* tag = nullptr;
  bool ok = false;
  while (queue->Next(&tag, &ok)) Completion::Proceed(tag, ok);
}

void StatusServer::Running::Shutdown() {
  if (server == nullptr) return;
  listener.reset();
  server->Shutdown(absl::ToChronoTime(absl::InfinitePast()));
  lease.reset();
  thread.join();  // ends with the last call
  server.reset();
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
