// Additions to a snapshot: what decides beside the node itself.
#pragma once

#include <string>
#include <vector>

#include "agent/session.h"
#include "agent/snapshot/snapshot.h"

namespace vfio_agent {

// The configuration as it is understood, the journal, and of pci.ids the names of the node's own
// devices: each at its default place, where `--root SNAPSHOT` finds it. `missing` collects what
// could not be read.
Additions TakeAdditions(const Session& session, const Recording& recording,
                        std::vector<std::string>& missing);

// The configuration's text: the policy and the one setting that a plan depends on.
std::string PolicyToText(const Config& config, bool iommufd);

// A pci.ids file with these names alone.
std::string ModelNamesToText(const ModelNames& names);

}  // namespace vfio_agent
