// HostProcesses: the processes of a node that matter to passthrough, by their names.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sysfs/fact.h"

namespace vfio_agent {

class Tree;

inline constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

struct HostProcess {
  int pid = 0;
  std::string command;                 // proc/<pid>/comm: at most 15 characters
  std::string owner;                   // what CgroupOwner() says: "kubelet.service", "pod 1b2c…"
  Fact<uint64_t> locked_memory_bytes;  // the soft limit; kUnlimited
  bool operator==(const HostProcess&) const = default;
};

struct HostProcesses {
  std::vector<HostProcess> list;  // those that were asked for, by number
  // False where not every process can be seen (a pod without hostPID) or none (a copy without
  // them): one that is not in the list may run all the same.
  bool complete = false;
  bool operator==(const HostProcesses&) const = default;
};

// Those whose command begins with one of `commands`.
HostProcesses ReadHostProcesses(const Tree& tree, std::span<const std::string_view> commands);

// The words with which a process was started. Takes the lock of its memory, which a process that
// hangs in the kernel may hold.
std::vector<std::string> ReadArguments(const Tree& tree, int pid);

// The soft limit of "Max locked memory" in the text of proc/<pid>/limits.
Fact<uint64_t> ParseLockedMemory(std::string_view limits);

}  // namespace vfio_agent
