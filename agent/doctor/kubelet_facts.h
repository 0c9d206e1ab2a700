// Reads what DoctorFacts tell of the kubelet.
#pragma once

#include "agent/doctor/facts.h"

namespace vfio_agent {

// Where to look for it.
struct KubeletSources {
  const Tree* proc = nullptr;     // never null
  const Tree* files = nullptr;    // the root that the kubelet sees; null: cannot be seen
  const Tree* plugins = nullptr;  // what the settings' directories are below; never null
  bool files_live = true;         // sockets below `files` can be asked
  bool plugins_live = true;       // and those below `plugins`
};

KubeletFacts ReadKubeletFacts(const KubeletSources& sources, const HostProcesses& processes,
                              const Settings& settings);

// The kubelet among `processes`, also where a distribution has it within another program; null for
// none.
const HostProcess* FindKubelet(const HostProcesses& processes);

}  // namespace vfio_agent
