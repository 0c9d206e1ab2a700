// IndexedOffer: an Offer together with the way from a device id to its unit. Immutable.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "deviceplugin/offer/offer.h"

namespace vfio_agent {

// Made once for each offer, so that no answer to the kubelet walks the whole list for each id.
class IndexedOffer {
 public:
  IndexedOffer() = default;
  explicit IndexedOffer(Offer offer);

  const Offer& offer() const { return offer_; }
  const OfferedUnit& unit(size_t position) const { return offer_.units[position]; }

  // Where in offer().units the unit stands that has this id.
  std::optional<size_t> Find(std::string_view id) const;

 private:
  Offer offer_;
  std::vector<size_t> by_id_;  // positions, sorted by the unit's id
};

}  // namespace vfio_agent
