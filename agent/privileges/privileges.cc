#include "agent/privileges/privileges.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "sysfs/tree.h"
#include "sysfs/use/holders.h"

namespace vfio_agent {
namespace {

struct CapabilityRow {
  Rights capability;
  Lack lack;
};

constexpr CapabilityRow kCapabilityRows[] = {
    {RightSet({CAP_SYS_PTRACE}),
     {"CAP_SYS_PTRACE", "which processes have a device open is not known"}},
    {RightSet({CAP_DAC_READ_SEARCH}),
     {"CAP_DAC_READ_SEARCH", "what other users' processes have open is not known"}},
    {RightSet({CAP_SYS_ADMIN}),
     {"CAP_SYS_ADMIN",
      "ACS, the boot console's frame buffer and where a stuck write waits are not known"}},
    {RightSet({CAP_SYS_MODULE}),
     {"CAP_SYS_MODULE", "vfio drivers are not loaded: the node has to load them"}},
};

// The two directories that the agent writes below.
bool IsWritable(const Tree& tree, const char* dir) {
  const absl::StatusOr<Fd> fd = tree.OpenAt(dir, O_PATH | O_DIRECTORY);
  struct statvfs info = {};
  // What is not there is told elsewhere.
  return !fd.ok() || ::fstatvfs(fd->get(), &info) != 0 || (info.f_flag & ST_RDONLY) == 0;
}

}  // namespace

Privileges ReadPrivileges(const Tree& tree) {
  return {.superuser = ::geteuid() == 0,
          .writable_sysfs = IsWritable(tree, "sys/bus/pci") && IsWritable(tree, "sys/devices"),
          .all_processes = SeesAllProcesses(tree),
          .capabilities = PermittedRights()};
}

std::vector<Lack> FindLacks(const Privileges& privileges) {
  std::vector<Lack> lacks;
  if (!privileges.superuser) lacks.push_back({"uid 0", "nothing can be bound or released"});
  if (!privileges.writable_sysfs) {
    lacks.push_back({"a writable /sys", "nothing can be bound or released"});
  }
  if (!privileges.all_processes) {
    lacks.push_back({"hostPID",
                     "which processes have a device open, and what the host has "
                     "mounted and which of its interfaces it uses, is not known"});
  }
  for (const CapabilityRow& row : kCapabilityRows) {
    if ((privileges.capabilities & row.capability) == 0) lacks.push_back(row.lack);
  }
  return lacks;
}

}  // namespace vfio_agent
