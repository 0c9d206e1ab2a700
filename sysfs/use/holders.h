// Holders: the processes that have device nodes open.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sysfs/node_facts.h"

namespace vfio_agent {

// A device node to look for.
struct DeviceNode {
  std::string name;  // below /dev: "vfio/26", "nvidia0"
  bool block = false;
  std::optional<dev_t> number;  // nullopt: known by its name alone
  bool operator==(const DeviceNode&) const = default;
};

struct Holder {
  int pid = 0;          // 0: one that cannot be seen
  std::string command;  // proc/<pid>/comm: at most 15 characters
  std::string pod;      // what CgroupOwner() says
  std::string node;     // as the process knows it: "/run/nvidia/driver/dev/nvidia0"
  bool operator==(const Holder&) const = default;
};

struct NodeHolders {
  // One list for each node that was asked for, in that order; a process once in each.
  std::vector<std::vector<Holder>> by_node;
  // False where not every process can be seen (a pod without hostPID) or its descriptors read (no
  // CAP_SYS_PTRACE): then "nobody" is not known.
  bool complete = true;
};

// "259:2", as the attribute `dev` has it.
std::optional<dev_t> ParseDeviceNumber(std::string_view text);

// False where this process is not in the machine's first process namespace: proc/1 is then some
// container's. True for roots other than "/", which are taken as they are, but for a record that
// says otherwise of its node.
bool SeesAllProcesses(const Tree& tree);

// Looks through proc/*/fd once for all `nodes`. On the host a descriptor is known by its device
// number, whatever its name and mount namespace; below another root by the number that a record has
// of it or of the node that its name leads to there, else by the name from "/dev/" on.
NodeHolders FindHolders(const Tree& tree, const std::vector<DeviceNode>& nodes);

// The nodes that open `group`: its own, and its members' cdevs.
std::vector<DeviceNode> GroupNodes(const Tree& tree, const NodeFacts& facts, int group);

// "pid 4711 (qemu-system-x86, pod 1b2c…)", for messages; without a pid the command alone.
std::string Spell(const Holder& holder);

// True where the kernel says that the group's node is open: it lets one open it at a time
// (EBUSY). Tells also of processes that cannot be seen. nullopt where this process may not try: a
// device cgroup denies it, or the node is another user's. A kernel without nodes of groups lets
// several open a member's cdev: then it is what the processes tell, and nullopt where none of those
// that can be seen has it and not all can.
std::optional<bool> IsGroupOpen(const Tree& tree, int group);

}  // namespace vfio_agent
