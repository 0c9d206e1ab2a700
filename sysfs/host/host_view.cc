#include "sysfs/host/host_view.h"

#include "absl/strings/str_format.h"
#include "sysfs/paths.h"
#include "sysfs/proc_text.h"
#include "sysfs/tree.h"
#include "sysfs/use/holders.h"

namespace vfio_agent {

bool SeesHostFiles(const Tree& tree) {
  if (!tree.is_host()) return true;
  if (!SeesAllProcesses(tree)) return false;
  const absl::StatusOr<std::string> mine = ReadProcText(tree, "proc/self/mountinfo");
  const absl::StatusOr<std::string> first = ReadProcText(tree, kHostMounts);
  return !mine.ok() || !first.ok() || ParseRootMount(*mine) == ParseRootMount(*first);
}

// "36 35 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw": the last one covers the others.
std::string ParseRootMount(std::string_view mountinfo) {
  std::string root;
  for (const std::string_view line : Lines(mountinfo)) {
    const std::vector<std::string_view> words = Fields(line);
    if (words.size() < 5 || words[4] != "/") continue;
    root = absl::StrFormat("%s %s", words[2], words[3]);
  }
  return root;
}

}  // namespace vfio_agent
