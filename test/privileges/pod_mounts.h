// PodMounts: the file systems that a container sees, made in this process's own mount namespace.
#pragma once

#include <map>
#include <string>

#include "test/privileges/pod_spec.h"

namespace vfio_agent {

struct PodPlace {
  // A simulated node: what the manifest mounts of /sys, /dev, /proc and /lib/modules is mounted
  // below this directory, from the same. Empty: this machine's own.
  std::string node;
  // Other host paths and the directories that stand for them; the container sees them at the
  // directory's own path, so that nothing has to be told two names.
  std::map<std::string, std::string> at;
};

// Call it in a mount namespace of its own. Everything is read-only but what the manifest mounts
// writable; /sys, /dev and /proc are as a runtime makes them, and the manifest's mounts lie above.
// Ends the process, with the reason, where that cannot be done.
void MakePodMounts(const PodSpec& spec, const PodPlace& place);

// Where the container sees the mount, with its path in the manifest.
std::string PlaceOf(const std::string& path, const PodPlace& place);

// Prints "pod-run: what: errno's text" and ends the process.
[[noreturn]] void Die(const std::string& what);

}  // namespace vfio_agent
