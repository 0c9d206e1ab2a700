// NFD feature file: what this node serves, as labels that node-feature-discovery puts on it. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "deviceplugin/offer/offer.h"
#include "deviceplugin/status/agent_status.h"
#include "sysfs/host/iommu_facts.h"

namespace vfio_agent {

// NFD ignores a file that is longer, all of it; some room is left for its first line.
inline constexpr size_t kNfdLabelsLimit = 65536 - 128;

struct NfdLabels {
  std::string text;                   // "vfio-agent/<key>=<value>" in each line
  std::vector<std::string> problems;  // resources that could not have their labels, and why
};

// passthrough.ready (a unit can be given to a pod), iommu (its kind, or why there is none), and for
// each resource <name>.units and <name>.healthy, where <name> is what follows the resource's slash.
// All offers of a resource count together, without a unit that is listed only because a pod may
// have it still. `more`: lines of others that come with it.
NfdLabels MakeNfdLabels(const IommuFacts& iommu, const std::vector<Offer>& offers,
                        std::string more = "", size_t limit = kNfdLabelsLimit);

// mode and mode.state, as such lines.
std::string ModeLabels(const ModeStatus& mode);

// How long a file is good for: an agent that is gone leaves no label behind for ever. One that goes
// on reads the node, and with it writes anew what is half over, several times before.
absl::Duration NfdValidity(absl::Duration resync);

// The whole file: its labels are good until `expiry`.
std::string NfdText(const std::string& labels, absl::Time expiry);

}  // namespace vfio_agent
