#include "agent/live.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include "agent/snapshot/replay_root.h"
#include "sysfs/paths.h"

namespace vfio_agent {

bool IsLive(const Session& session, const char* key) {
  return session.tree().is_host() || ResolveSettings(session.Sources()).at(key).source != "default";
}

bool IsCopy(const Tree& tree) {
  const absl::StatusOr<Fd> devices = tree.OpenAt(kDevicesDir, O_PATH);
  struct statfs system = {};
  if (tree.is_host() || !devices.ok() || ::fstatfs(devices->get(), &system) != 0) return false;
  return system.f_type != SYSFS_MAGIC && system.f_type != FUSE_SUPER_MAGIC;
}

bool IsStateDirLive(const Session& session) {
  const std::optional<WorkedOn> snapshot = WorkedSnapshot();
  return IsLive(session, "stateDir") && !(snapshot && snapshot->own_state_dir);
}

}  // namespace vfio_agent
