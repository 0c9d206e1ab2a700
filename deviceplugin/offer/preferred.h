// Which units the kubelet had better give to one container. Pure advice.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "deviceplugin/offer/indexed_offer.h"

namespace vfio_agent {

struct Preference {
  std::vector<std::string> available;  // ids that the kubelet may give
  std::vector<std::string> must;       // ids that it will give in any case; among `available`
  size_t size = 0;                     // how many in all, `must` counted
};

// Exactly `size` of the available ids with all of `must` among them, sorted as the offer is; the
// order of the request does not matter. Empty where that cannot be had: an RPC error would reject
// the pod, an empty answer leaves the choice to the kubelet.
//
// In order of weight: no IOMMU group is split between containers (a group whose other units are
// not available is the last resort); few NUMA nodes, then few host bridges, then few switches. At
// each of these levels the fullest place in which the request still fits is used up first, so that
// large requests find whole nodes and whole switches later. The GPUs of an EGM region that is whole
// are kept together like a group of which all is free. An offer with partitions goes by these
// alone (partition.h).
std::vector<std::string> PreferUnits(const IndexedOffer& offer, const Preference& wanted);

}  // namespace vfio_agent
