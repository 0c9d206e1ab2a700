// Privileges: what this process may do, and what it cannot know or do for lack of one.
#pragma once

#include <string_view>
#include <vector>

#include "agent/privileges/rights.h"

namespace vfio_agent {

class Tree;

// As it was at the start; nothing of it comes back later.
struct Privileges {
  bool superuser = true;       // uid 0, to whom the kernel's files belong
  bool writable_sysfs = true;  // not mounted read-only
  bool all_processes = true;   // in the machine's first process namespace
  Rights capabilities = kAgentRights;
};

// One that is missing. Both are fixed texts; OPERATING.md has the same names.
struct Lack {
  std::string_view what;     // "CAP_SYS_PTRACE"
  std::string_view without;  // "who has a device open is not known"
};

Privileges ReadPrivileges(const Tree& tree);

// In a fixed order, the gravest first.
std::vector<Lack> FindLacks(const Privileges& privileges);

}  // namespace vfio_agent
