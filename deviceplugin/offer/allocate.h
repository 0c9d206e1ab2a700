// What a container gets when the kubelet hands it our devices. Pure.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "deviceplugin/offer/indexed_offer.h"
#include "proto/deviceplugin_v1beta1.pb.h"

namespace vfio_agent {

// Whether a unit may be had by whoever asks.
using Fit = std::function<bool(const OfferedUnit&)>;
bool IsHealthy(const OfferedUnit& unit);

// The units of one request, in the offer's order whatever the order of `ids`, so that equal
// requests get equal answers: the kubelet hands ids over in random order.
//
// InvalidArgument: no id at all, an id twice, or one that is not offered. FailedPrecondition: a
// unit that is not `fit`, with the reason why it is not healthy. Nothing is ever skipped.
absl::StatusOr<std::vector<const OfferedUnit*>> FindUnits(const IndexedOffer& offer,
                                                          const std::vector<std::string>& ids,
                                                          const Fit& fit = IsHealthy);

// True where an answer about one names what an answer about the other does.
bool HaveOneAnswer(const OfferedUnit& one, const OfferedUnit& other);

// The answer for one container that gets `units` of `offer`.
v1beta1::ContainerAllocateResponse MakeAllocation(const Offer& offer,
                                                  const std::vector<const OfferedUnit*>& units);

}  // namespace vfio_agent
