// PodSeccomp: a filter of system calls that is no wider than the runtimes' own (RuntimeDefault).
#pragma once

#include <span>
#include <string_view>

#include "test/privileges/pod_spec.h"

namespace vfio_agent {

// The calls that the agent makes, and that may therefore pass: everything else is EPERM. So what
// works below this filter works below each runtime's, as long as none of these is blocked there.
std::span<const char* const> AllowedCalls();

// What containerd's and CRI-O's default profiles keep from a container that has none of the
// capabilities for it, by their documentation.
std::span<const char* const> CallsThatRuntimesBlock();

// Installs it for this process and what it starts. As in the runtimes' profiles, SYS_MODULE lets
// modules be loaded. Ends the process, with the reason, where that cannot be done.
void InstallPodSeccomp(const PodSpec& spec);

}  // namespace vfio_agent
