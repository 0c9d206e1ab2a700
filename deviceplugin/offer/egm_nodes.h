// EgmNodes: the nodes of Extended GPU Memory that a container gets with its GPUs.
#pragma once

#include <deque>
#include <vector>

#include "absl/status/status.h"
#include "deviceplugin/offer/offer.h"

namespace vfio_agent {

class Tree;

// Where `units`, which one container gets, have every GPU of a region, the region's node is added
// to those that have the GPUs: copies in `own`, which `units` then points to.
//
// FailedPrecondition, "/dev/egm4: <code>: …", where the kernel's list of the region's GPUs is
// another one now or its node is gone. The next look at the node mends that.
absl::Status AddEgmNodes(const Tree& tree, const Offer& offer,
                         std::vector<const OfferedUnit*>& units, std::deque<OfferedUnit>& own);

}  // namespace vfio_agent
