#include "agent/work/child.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <vector>

#include "agent/daemon/signals.h"

namespace vfio_agent {

void LeaveParent(std::initializer_list<int> keep, Rights uses) {
  ::setpgid(0, 0);
  std::vector<int> kept(keep);
  std::ranges::sort(kept);
  unsigned from = 3;
  for (const int fd : kept) {
    const auto next = static_cast<unsigned>(fd);
    if (next > from) ::close_range(from, next - 1, 0);
    from = std::max(from, next + 1);
  }
  ::close_range(from, ~0U, 0);
  ResetSignals();
  ::signal(SIGPIPE, SIG_IGN);
  UseOnly(uses);
}

void UseOnly(Rights uses) { KeepRights(uses, uses).IgnoreError(); }

}  // namespace vfio_agent
