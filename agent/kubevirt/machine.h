// The part of the comparison that looks at one machine.
#pragma once

#include <string_view>
#include <vector>

#include "agent/kubevirt/diff.h"

namespace vfio_agent {

// `configuration`: KubeVirt's, where the file has it; else null.
std::vector<Difference> CheckMachine(const Served& served, const KubevirtMachine& machine,
                                     const KubevirtConfiguration* configuration);

// Says what `hostDevices` needs: a note where the configuration is not known.
void CheckGate(const KubevirtConfiguration* configuration, std::vector<Difference>& findings);

// True for two names that are not equal and yet give the same variable.
bool DiffersOnlyInSpelling(std::string_view a, std::string_view b);

}  // namespace vfio_agent
