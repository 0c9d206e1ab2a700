#include "deviceplugin/offer/indexed_offer.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace vfio_agent {

IndexedOffer::IndexedOffer(Offer offer) : offer_(std::move(offer)), by_id_(offer_.units.size()) {
  std::iota(by_id_.begin(), by_id_.end(), size_t{0});
  std::ranges::sort(by_id_, {}, [this](size_t position) -> const std::string& {
    return offer_.units[position].id;
  });
}

std::optional<size_t> IndexedOffer::Find(std::string_view id) const {
  const auto found = std::ranges::lower_bound(
      by_id_, id, {}, [this](size_t position) -> std::string_view { return unit(position).id; });
  if (found == by_id_.end() || unit(*found).id != id) return std::nullopt;
  return *found;
}

}  // namespace vfio_agent
