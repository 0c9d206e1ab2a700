#include "agent/privileges/rights.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

#include "sysfs/status.h"

namespace vfio_agent {
namespace {

// The kernel has them in two halves. libc has no function for them, and libcap would be one more
// library to load for two calls.
using Halves = std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3>;

__user_cap_header_struct ThisThread() { return {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0}; }

absl::Status Read(Halves& halves) {
  __user_cap_header_struct header = ThisThread();
  if (::syscall(SYS_capget, &header, halves.data()) != 0) return ErrnoStatus("capget");
  return absl::OkStatus();
}

uint32_t Half(Rights set, size_t i) { return static_cast<uint32_t>(set >> (32 * i)); }

absl::Status Write(Rights permitted, Rights effective) {
  __user_cap_header_struct header = ThisThread();
  Halves halves = {};  // nothing is inheritable
  for (size_t i = 0; i < halves.size(); ++i) {
    halves[i].permitted = Half(permitted, i);
    halves[i].effective = Half(effective, i);
  }
  if (::syscall(SYS_capset, &header, halves.data()) != 0) return ErrnoStatus("capset");
  return absl::OkStatus();
}

// Needs CAP_SETPCAP. Who has not got it, such as a container, has what its starter left it; and
// with no_new_privs the bounding set gives nothing to any program.
absl::Status Bound(Rights bound, Rights before) {
  if ((before & RightSet({CAP_SETPCAP})) == 0) return absl::OkStatus();
  for (unsigned number = 0; number < 64; ++number) {
    // EINVAL: the kernel has no such capability, nor any above it.
    if (::prctl(PR_CAPBSET_READ, number, 0, 0, 0) < 0) break;
    if ((bound & RightSet({number})) != 0) continue;
    if (::prctl(PR_CAPBSET_DROP, number, 0, 0, 0) != 0)
      return ErrnoStatus("drop from bounding set");
  }
  return absl::OkStatus();
}

}  // namespace

Rights PermittedRights() {
  Halves halves = {};
  if (!Read(halves).ok()) return kNoRights;
  return halves[0].permitted | Rights{halves[1].permitted} << 32;
}

absl::Status KeepRights(Rights permitted, Rights effective) {
  const Rights before = PermittedRights();
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return ErrnoStatus("set no_new_privs");
  // Before the permitted set, which has the right to do it. It clears the ambient set by itself.
  RETURN_IF_ERROR(Bound(permitted, before));
  const Rights kept = before & permitted;
  return Write(kept, kept & effective);
}

}  // namespace vfio_agent
