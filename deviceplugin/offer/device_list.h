// The list that the kubelet watches: one message for one offer. Pure.
#pragma once

#include "deviceplugin/offer/offer.h"
#include "proto/deviceplugin_v1beta1.pb.h"

namespace vfio_agent {

// The only string that the kubelet takes for healthy, and the one for everything else.
inline constexpr char kHealthy[] = "Healthy";
inline constexpr char kUnhealthy[] = "Unhealthy";

// The whole list, in the offer's order.
//
// NUMA nodes are told for all units or for none: as soon as one device of a resource has a node,
// the kubelet never counts one without in any alignment, and a request may become unsatisfiable.
v1beta1::ListAndWatchResponse MakeDeviceList(const Offer& offer);

// True where MakeDeviceList() gives the same for both. The kubelet rewrites its checkpoint at
// every message, so it is spared those that say nothing new.
bool SameDeviceList(const Offer& a, const Offer& b);

}  // namespace vfio_agent
