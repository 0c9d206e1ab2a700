// Partitions: which sets of units one container may have where hardware ties them together. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "deviceplugin/offer/indexed_offer.h"
#include "deviceplugin/offer/preferred.h"

namespace vfio_agent {

// As PreferUnits(), for an offer with partitions: one of the asked size whose units are all to be
// had; of several the one that tears the fewest larger ones that are whole still. Where there is
// none, partitions and single units that together tear the fewest; of bundles only whole ones.
std::vector<std::string> PreferPartition(const IndexedOffer& offer, const Preference& wanted);

// FailedPrecondition where one container must not have these units: several that are no partition,
// or a part of a bundle. Says which sets there are.
absl::Status CheckPartition(const Offer& offer, const std::vector<const OfferedUnit*>& units);

}  // namespace vfio_agent
