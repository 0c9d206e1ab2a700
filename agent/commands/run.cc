#include "agent/agent.h"
#include "agent/commands.h"
#include "agent/exit_code.h"
#include "agent/log.h"
#include "agent/report.h"

namespace vfio_agent {

int RunCommand(Session& session) {
  if (!session.settings().metrics_listen.empty()) {
    Log(Note("metrics.listen is set, but this version serves no metrics"));
  }
  Agent agent(session);  // keeps the node until what is to be released is
  const int exit_code = agent.Run();
  const bool release = agent.has_node() && session.settings().on_exit == OnExit::kRelease;
  if (exit_code != kExitDone || !release) return exit_code;
  return ReleaseCommand(session);
}

}  // namespace vfio_agent
