// The asking side of the status socket.
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "deviceplugin/grpc/channel.h"
#include "deviceplugin/kubelet/server.h"
#include "deviceplugin/status/status_message.h"
#include "deviceplugin/status/status_server.h"
#include "proto/health.grpc.pb.h"
#include "proto/status.grpc.pb.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

absl::Status Explain(const std::string& socket, const absl::Status& status, absl::Duration limit) {
  if (absl::IsDeadlineExceeded(status)) {
    return absl::DeadlineExceededError(absl::StrFormat(
        "the agent does not answer on %s: nothing within %s", socket, absl::FormatDuration(limit)));
  }
  if (absl::IsUnavailable(status)) {
    return absl::UnavailableError(absl::StrFormat(
        "whoever listens on %s hung up: only root and the agent's own user are answered (%s)",
        socket, status.message()));
  }
  return Annotate(status, absl::StrFormat("asking on %s", socket));
}

// Makes one call: `begin(channel, context, queue)` starts it and gives its reader.
template <typename Answer, typename Begin>
absl::StatusOr<Answer> Ask(const std::string& socket, absl::Duration limit, const Begin& begin) {
  SilenceGrpc();
  const absl::Time deadline = absl::Now() + limit;
  const auto channel = Dial(socket);
  if (ErrnoOf(channel.status()) == EACCES) {
    return absl::PermissionDeniedError(absl::StrFormat(
        "needs root: %s is for root and the agent's own user (Permission denied)", socket));
  }
  if (!channel.ok()) {
    return absl::NotFoundError(
        absl::StrFormat("no agent answers on %s: %s; does `vfio-agent run` run here, with this "
                        "stateDir?",
                        socket, Message(channel.status())));
  }
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(deadline));
  grpc::CompletionQueue queue;
  const auto call = begin(*channel, context, queue);
  Answer answer;
  grpc::Status result;
  call->Finish(&answer, &result, &result);
  const absl::Status ended = AwaitEnd(queue, context, result, deadline);
  if (!ended.ok()) return Explain(socket, ended, limit);
  return answer;
}

}  // namespace

absl::StatusOr<AgentStatus> FetchStatus(const std::string& socket, absl::Duration limit) {
  ASSIGN_OR_RETURN(const status::v1::AgentStatus answer,
                   Ask<status::v1::AgentStatus>(
                       socket, limit, [](const auto& channel, auto& context, auto& queue) {
                         return status::v1::Status::NewStub(channel)->AsyncGet(
                             &context, status::v1::GetRequest(), &queue);
                       }));
  return FromMessage(answer);
}

absl::Status FetchHealth(const std::string& socket, absl::Duration limit) {
  using Response = grpc::health::v1::HealthCheckResponse;
  ASSIGN_OR_RETURN(
      const Response answer,
      Ask<Response>(socket, limit, [](const auto& channel, auto& context, auto& queue) {
        return grpc::health::v1::Health::NewStub(channel)->AsyncCheck(
            &context, grpc::health::v1::HealthCheckRequest(), &queue);
      }));
  if (answer.status() == Response::SERVING) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "the agent that answers on %s says that its loop hangs: its log has more", socket));
}

}  // namespace vfio_agent
