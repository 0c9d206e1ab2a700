#include "agent/live.h"

#include "agent/snapshot/replay_root.h"

namespace vfio_agent {

bool IsLive(const Session& session, const char* key) {
  return session.tree().is_host() || ResolveSettings(session.Sources()).at(key).source != "default";
}

bool IsStateDirLive(const Session& session) {
  const std::optional<WorkedOn> snapshot = WorkedSnapshot();
  return IsLive(session, "stateDir") && !(snapshot && snapshot->own_state_dir);
}

}  // namespace vfio_agent
