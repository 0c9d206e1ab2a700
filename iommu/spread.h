// How many of a kind are made where: what `mdev:` and `vgpu:` have in common. Pure.
#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "iommu/policy/policy.h"

namespace vfio_agent {

// Where the next one goes: to the parent with the fewest, or first to the NUMA node with the
// fewest. Null where there is no room anywhere. A Place has `have`, `room`, Address() and Node().
template <typename Place>
Place* NextPlace(MdevSpread spread, std::vector<Place>& places) {
  std::map<std::optional<int>, int> on_node;
  for (const Place& place : places) on_node[place.Node()] += place.have;
  const auto rank = [&](const Place& place) {
    const bool by_node = spread == MdevSpread::kNuma;
    return std::tuple(by_node ? on_node[place.Node()] : 0, place.have, place.Address());
  };
  Place* best = nullptr;
  for (Place& place : places) {
    if (place.room > 0 && (best == nullptr || rank(place) < rank(*best))) best = &place;
  }
  return best;
}

// Calls `make` with a place for each one that is missing, which counts it there, and
// `fall_short` with a place and a number where there is no room for so many.
template <typename Place, typename Make, typename FallShort>
void DealOut(MdevSpread spread, int count, std::vector<Place>& places, const Make& make,
             const FallShort& fall_short) {
  if (spread == MdevSpread::kEach) {
    for (Place& place : places) {
      int missing = count - place.have;
      for (; missing > 0 && place.room > 0; --missing) make(place);
      if (missing > 0) fall_short(place, missing);
    }
    return;
  }
  for (const Place& place : places) count -= place.have;
  for (; count > 0; --count) {
    Place* const place = NextPlace(spread, places);
    if (place == nullptr) return fall_short(places.front(), count);
    make(*place);
  }
}

}  // namespace vfio_agent
