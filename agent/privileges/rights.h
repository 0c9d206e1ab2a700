// Rights: the capabilities, of which each process of the agent keeps what it uses.
#pragma once

#include <linux/capability.h>

#include <cstdint>
#include <initializer_list>

#include "absl/status/status.h"

namespace vfio_agent {

// One bit for each capability, at its number.
using Rights = uint64_t;

constexpr Rights RightSet(std::initializer_list<unsigned> numbers) {
  Rights set = 0;
  for (const unsigned number : numbers) set |= Rights{1} << number;
  return set;
}

inline constexpr Rights kNoRights = 0;
// The loop reads the config space, and the kernel stack of a child that is stuck.
inline constexpr Rights kLoopRights = RightSet({CAP_SYS_ADMIN});
// A child that looks at what is in use: other users' descriptors, and /proc/iomem.
inline constexpr Rights kLookRights =
    RightSet({CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH});
// A child that has a module to load, until that is done. Writing to the kernel's files needs none:
// they are uid 0's.
inline constexpr Rights kLoadRights = RightSet({CAP_SYS_MODULE});
// All that the agent ever uses.
inline constexpr Rights kAgentRights = kLoopRights | kLookRights | kLoadRights;

// Those that this thread has, or could take back.
Rights PermittedRights();

// For a process that has no other threads yet, since capabilities are a thread's: drops for good
// what is not in `permitted`, from all five sets, and leaves `effective` switched on of what is
// left. No program that is started from here gets more (no_new_privs). What the process never had
// it does not get, which is no error.
absl::Status KeepRights(Rights permitted, Rights effective);

}  // namespace vfio_agent
