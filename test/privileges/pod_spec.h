// PodSpec: of a DaemonSet's manifest, what a container runtime makes of it for one process.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace vfio_agent {

struct PodMount {
  std::string path;     // in the container
  std::string host;     // empty: no host path, such as a ConfigMap
  bool create = false;  // DirectoryOrCreate
  bool read_only = false;
};

struct PodSpec {
  bool host_pid = false;
  bool host_network = false;
  bool read_only_root = false;
  bool no_new_privileges = false;
  bool runtime_seccomp = false;
  std::set<std::string> capabilities;  // without "CAP_"
  std::vector<PodMount> mounts;
};

// Of the first container. Ends the process, with the reason, where the file is none that this
// reads: the tests' own input.
PodSpec ReadPodSpec(const std::string& file);

}  // namespace vfio_agent
