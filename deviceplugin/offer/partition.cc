#include "deviceplugin/offer/partition.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "iommu/code.h"

namespace vfio_agent {
namespace {

using Ids = std::vector<std::string>;  // sorted

constexpr size_t kMostTold = 8;

bool Includes(const Ids& all, const Ids& part) { return std::ranges::includes(all, part); }

bool Meet(const Ids& a, const Ids& b) {
  return std::ranges::any_of(
      a, [&b](const std::string& id) { return std::ranges::binary_search(b, id); });
}

Ids Union(const Ids& a, const Ids& b) {
  Ids both;
  std::ranges::set_union(a, b, std::back_inserter(both));
  return both;
}

// What may be given: it is there, and healthy, or will be given in any case.
Ids UsableOf(const IndexedOffer& offer, const Preference& wanted) {
  std::set<std::string> usable(wanted.must.begin(), wanted.must.end());
  for (const std::string& id : wanted.available) {
    const std::optional<size_t> found = offer.Find(id);
    if (found && offer.unit(*found).healthy) usable.insert(id);
  }
  return {usable.begin(), usable.end()};
}

class Chooser {
 public:
  Chooser(const IndexedOffer& offer, const Preference& wanted)
      : size_(wanted.size), must_(wanted.must) {
    std::ranges::sort(must_);
    const Ids usable = UsableOf(offer, wanted);
    for (const Ids& partition : offer.offer().partitions) {
      if (Includes(usable, partition)) whole_.push_back(partition);
    }
    pieces_ = whole_;
    if (offer.offer().only_partitions) return;
    for (const OfferedUnit& unit : offer.offer().units) {
      if (std::ranges::binary_search(usable, unit.id)) pieces_.push_back({unit.id});
    }
  }

  Ids Choose() const {
    const Ids* best = nullptr;
    for (const Ids& partition : whole_) {
      if (partition.size() != size_ || !Includes(partition, must_)) continue;
      if (best == nullptr || TornBy(partition) < TornBy(*best)) best = &partition;
    }
    return best != nullptr ? *best : PutTogether();
  }

 private:
  // The units of whole partitions that `chosen` would break up.
  size_t TornBy(const Ids& chosen) const {
    size_t torn = 0;
    for (const Ids& partition : whole_) {
      if (Meet(partition, chosen) && !Includes(chosen, partition)) torn += partition.size();
    }
    return torn;
  }

  // The largest piece that fits, again and again.
  Ids PutTogether() const {
    Ids chosen = must_;
    while (chosen.size() < size_) {
      const Ids* best = nullptr;
      const auto rank = [&](const Ids& piece) {
        return std::tuple(size_ - piece.size(), TornBy(Union(chosen, piece)));
      };
      for (const Ids& piece : pieces_) {
        if (piece.size() + chosen.size() > size_ || Meet(piece, chosen)) continue;
        if (best == nullptr || rank(piece) < rank(*best)) best = &piece;
      }
      if (best == nullptr) return {};
      chosen = Union(chosen, *best);
    }
    return chosen;
  }

  const size_t size_;
  Ids must_;
  std::vector<Ids> whole_;   // partitions that can be had
  std::vector<Ids> pieces_;  // and single units, where these may be given
};

std::string SetsText(const Offer& offer, size_t size) {
  Ids sets;
  std::set<size_t> sizes;
  for (const Ids& partition : offer.partitions) {
    sizes.insert(partition.size());
    if (partition.size() == size && sets.size() <= kMostTold) {
      sets.push_back(absl::StrJoin(partition, "+"));
    }
  }
  if (sets.empty()) {
    return absl::StrFormat("there is none of %d, only of %s", size, absl::StrJoin(sizes, ", "));
  }
  if (sets.size() > kMostTold) sets.back() = "more";
  return absl::StrFormat("those of %d are %s", size, absl::StrJoin(sets, ", "));
}

// The number may be right and the kubelet has taken parts of several: it is free to choose against
// what is preferred, and does where the rest of a bundle is not free.
std::string WhatToAsk(size_t asked, size_t bundle) {
  if (asked % bundle != 0) return absl::StrFormat("Ask for %d, or a multiple", bundle);
  return absl::StrFormat(
      "The number is right, but these are parts of several bundles: delete the pod, so that the "
      "kubelet chooses anew, and see `vfio-agent status` for what keeps the other parts of them");
}

// Of bundles one machine may have several, each of them whole.
absl::Status CheckBundles(const Offer& offer, const Ids& ids) {
  for (const Ids& bundle : offer.partitions) {
    if (!Meet(bundle, ids) || Includes(ids, bundle)) continue;
    return absl::FailedPreconditionError(
        absl::StrFormat("%s: %s: %s is a part of a bundle, which is given whole: %s. %s",
                        offer.resource, CodeName(Code::kGroupSplit), absl::StrJoin(ids, ","),
                        absl::StrJoin(bundle, "+"), WhatToAsk(ids.size(), bundle.size())));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> PreferPartition(const IndexedOffer& offer, const Preference& wanted) {
  const Ids chosen = Chooser(offer, wanted).Choose();
  if (chosen.size() != wanted.size) return {};
  Ids ordered;
  for (const OfferedUnit& unit : offer.offer().units) {
    if (std::ranges::binary_search(chosen, unit.id)) ordered.push_back(unit.id);
  }
  return ordered.size() == chosen.size() ? ordered : Ids{};
}

absl::Status CheckPartition(const Offer& offer, const std::vector<const OfferedUnit*>& units) {
  Ids ids;
  for (const OfferedUnit* unit : units) ids.push_back(unit->id);
  std::ranges::sort(ids);
  if (offer.only_partitions) return CheckBundles(offer, ids);
  if (ids.size() < 2) return absl::OkStatus();
  if (!offer.partitions_fault.empty()) {
    return absl::FailedPreconditionError(
        absl::StrFormat("%s: %s: only one unit at a time can be given: %s", offer.resource,
                        CodeName(Code::kGroupSplit), offer.partitions_fault));
  }
  if (offer.partitions.empty() || std::ranges::count(offer.partitions, ids) > 0) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrFormat(
      "%s: %s: %s are no partition of the configuration: %s", offer.resource,
      CodeName(Code::kGroupSplit), absl::StrJoin(ids, ","), SetsText(offer, ids.size())));
}

}  // namespace vfio_agent
