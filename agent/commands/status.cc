#include <iostream>

#include "absl/time/clock.h"
#include "agent/commands.h"
#include "agent/exit_code.h"
#include "agent/outlets/status.h"
#include "deviceplugin/server.h"
#include "deviceplugin/status_server.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

// The daemon answers at once or is in trouble.
constexpr absl::Duration kPatience = absl::Seconds(5);

absl::StatusOr<AgentStatus> Fetch(const Settings& settings) {
  ASSIGN_OR_RETURN(const std::string socket, SocketPath(settings.state_dir, kStatusSocket));
  return FetchStatus(socket, kPatience);
}

}  // namespace

int StatusCommand(Session& session) {
  const absl::StatusOr<AgentStatus> status = Fetch(session.settings());
  if (!status.ok()) {
    PrintError(Message(status.status()));
    return kExitFailed;
  }
  const Output output = session.invocation().output;
  if (IsDocument(output)) {
    PrintDocument(StatusToJson(*status), output);
  } else {
    std::cout << StatusToText(*status, absl::Now(), output == Output::kWide);
  }
  return kExitDone;
}

}  // namespace vfio_agent
