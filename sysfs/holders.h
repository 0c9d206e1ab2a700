// Holders: the processes that have a VFIO group or device node open.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sysfs/node_facts.h"

namespace vfio_agent {

struct Holder {
  int pid = 0;
  std::string command;  // proc/<pid>/comm
  bool operator==(const Holder&) const = default;
};

struct VfioHolders {
  std::map<int, std::vector<Holder>> by_group;
  // False where not every process can be seen (a pod without hostPID) or its descriptors read (no
  // CAP_SYS_PTRACE): then "nobody" is not known.
  bool complete = true;
};

// Looks through proc/*/fd for dev/vfio/<group> and, by `facts`, dev/vfio/devices/<cdev>. Costs a
// walk over all processes: for release and for questions, not for each reconcile.
VfioHolders FindVfioHolders(const Tree& tree, const NodeFacts& facts);

// True where the kernel says that the group's node is open: it lets one open it at a time
// (EBUSY). Tells also of processes that cannot be seen. False where the node cannot be tried.
bool IsGroupOpen(const Tree& tree, int group);

}  // namespace vfio_agent
