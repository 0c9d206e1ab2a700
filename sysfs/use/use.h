// Use: what the host does with PCI functions right now, read before one is taken from its driver.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sysfs/node_facts.h"
#include "sysfs/use/holders.h"

namespace vfio_agent {

enum class UseKind {
  kNetwork,  // an interface or RDMA port that the host's network needs
  kStorage,  // a block device with a mount, swap, or another block device on top of it
  kDisplay,  // the console or a framebuffer
  kProcess,  // a process has one of its nodes open
  kManager,  // another manager has given parts of it away (mdev instances)
};

// One use. `text` completes "<device> …": "carries eth0, which is up and has the default route".
struct Use {
  UseKind kind = UseKind::kProcess;
  std::string text;
  std::string remedy;  // the exact one where it is known; empty: the code's own
  bool operator==(const Use&) const = default;
};

struct UseFacts {
  std::map<PciAddress, std::vector<Use>> devices;  // an entry for each device that was asked for
  std::map<int, std::vector<Holder>> groups;       // the asked groups that somebody has open
  // False where not every process can be seen (no hostPID, no CAP_SYS_PTRACE): then holders are
  // unknown, not none, and so are mounts where process 1 is not the host's.
  bool processes_known = true;
  bool operator==(const UseFacts&) const = default;
};

// Reads the uses of `devices`, and who has the nodes of `groups` (numbers) open. One walk over all
// processes: for what is about to be written to, not for each reconcile. Never fails: what cannot
// be read and might be a use is reported as one.
UseFacts ReadUse(const Tree& tree, const NodeFacts& facts, const std::vector<PciAddress>& devices,
                 const std::vector<int>& groups);

}  // namespace vfio_agent
