// CgroupOwner: which pod, container or service a process belongs to, by its control group.
#pragma once

#include <string>
#include <string_view>

namespace vfio_agent {

// "pod 1b2c…-uid, container 0123456789ab", "container 0123456789ab" or
// "nvidia-persistenced.service"; empty where the groups tell none of these. `text` is
// proc/<pid>/cgroup, of either version, with the names that kubelet's systemd and cgroupfs drivers,
// containerd, CRI-O and Docker give.
std::string CgroupOwner(std::string_view text);

}  // namespace vfio_agent
