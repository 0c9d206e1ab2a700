#include <cstdlib>

#include "agent/commands/commands.h"
#include "agent/daemon/agent.h"
#include "agent/exit_code.h"
#include "agent/privileges/rights.h"
#include "agent/snapshot/replay_root.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

// By default all servers' threads share one epoll set: whichever waits in it reads for the others
// and has to wake them, so that an answer takes two threads. With poll(2) each waits for its own
// connections, of which there are few. Whoever has set the variable knows why.
void LetServersWaitAlone() {
  // There are no other threads yet.
  ::setenv("GRPC_POLL_STRATEGY", "poll", 0);  // NOLINT(concurrency-mt-unsafe)
}

// By default the directories are those of this machine's kubelet.
bool MayServe(const Invocation& invocation) {
  return !WorkedSnapshot() || (invocation.flags.contains("device-plugin-dir") &&
                               invocation.flags.contains("kubelet-root-dir"));
}

}  // namespace

// What only children use stays within their reach and is switched off here. A kernel that refuses
// leaves more than is needed, which stops nothing. Threads that come take after this one; and the
// configuration is read at the start as it is later: what cannot be read then is told now.
absl::Status DropPrivileges() {
  return Annotate(KeepRights(kAgentRights, kLoopRights), "privileges are not dropped");
}

int RunCommand(Session& session) {
  if (!MayServe(session.invocation())) {
    PrintError(
        "a snapshot's devices are not this machine's: name the directories of a kubelet that is to "
        "be told of them, by --device-plugin-dir and --kubelet-root-dir");
    return kExitUsage;
  }
  LetServersWaitAlone();
  Agent agent(session);  // keeps the node until what is to be released is
  const int exit_code = agent.Run();
  const bool release = agent.has_node() && session.settings().on_exit == OnExit::kRelease;
  if (exit_code != kExitDone || !release) return exit_code;
  return ReleaseTaken(session);
}

}  // namespace vfio_agent
