// The asking side of the status socket.
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "deviceplugin/channel.h"
#include "deviceplugin/server.h"
#include "deviceplugin/status_message.h"
#include "deviceplugin/status_server.h"
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

}  // namespace

absl::StatusOr<AgentStatus> FetchStatus(const std::string& socket, absl::Duration limit) {
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
  const auto stub = status::v1::Status::NewStub(*channel);
  const auto call = stub->AsyncGet(&context, status::v1::GetRequest(), &queue);
  status::v1::AgentStatus answer;
  grpc::Status result;
  call->Finish(&answer, &result, &result);
  const absl::Status ended = AwaitEnd(queue, context, result, deadline);
  if (!ended.ok()) return Explain(socket, ended, limit);
  return FromMessage(answer);
}

}  // namespace vfio_agent
