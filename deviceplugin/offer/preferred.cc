#include "deviceplugin/offer/preferred.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "absl/strings/str_format.h"
#include "deviceplugin/offer/partition.h"

namespace vfio_agent {
namespace {

// No guest has more passthrough devices than this; beyond it groups are not kept together on
// purpose, which keeps the work linear.
constexpr size_t kMostForGroups = 64;

using Place = std::vector<std::string>;  // NUMA node, host bridge, bridges downwards

// Units that are given together or not at all.
struct Block {
  Place place;
  std::vector<size_t> units;  // positions in the offer
};

Place PlaceOf(const OfferedUnit& unit) {
  Place place{unit.numa_node ? absl::StrFormat("%d", *unit.numa_node) : ""};
  place.insert(place.end(), unit.path.begin(), unit.path.end());
  return place;
}

size_t CountUnits(std::span<const Block* const> blocks) {
  size_t count = 0;
  for (const Block* block : blocks) count += block->units.size();
  return count;
}

// The largest number of units up to `want` that whole blocks add up to.
size_t Reach(std::span<const Block* const> blocks, size_t want) {
  const bool all_single =
      std::ranges::all_of(blocks, [](const Block* block) { return block->units.size() == 1; });
  if (all_single) return std::min(want, blocks.size());
  std::vector<bool> sums(want + 1);
  sums[0] = true;
  for (const Block* block : blocks) {
    for (size_t sum = want; sum >= block->units.size(); --sum) {
      if (sums[sum - block->units.size()]) sums[sum] = true;
    }
  }
  while (!sums[want]) --want;
  return want;
}

class Chooser {
 public:
  // `taken`: places of the units that the container has already.
  explicit Chooser(std::vector<Place> taken) : taken_(std::move(taken)) {}

  // Chooses up to `want` units of `blocks`, which lie in one place down to `level`. Goes down
  // into the best part again and again: a part in which the container has units already, then the
  // fullest one that suffices alone, then the one that gives most.
  void Choose(std::span<const Block* const> blocks, size_t level, size_t want) {
    if (CountUnits(blocks) == want) {
      for (const Block* block : blocks) Take(*block);
      return;
    }
    std::vector<Part> parts = Split(blocks, level);
    while (want > 0) {
      Part* best = nullptr;
      for (Part& part : parts) {
        part.gives = part.used ? 0 : Reach(part.blocks, want);
        if (part.gives == 0) continue;
        if (best == nullptr || Rank(part, want) < Rank(*best, want)) best = &part;
      }
      if (best == nullptr) return;
      best->used = true;
      want -= best->gives;
      if (best->blocks.size() == 1) {
        Take(*best->blocks.front());
      } else {
        Choose(best->blocks, level + 1, best->gives);
      }
    }
  }

  const std::vector<size_t>& chosen() const { return chosen_; }

 private:
  struct Part {
    std::vector<const Block*> blocks;
    size_t free = 0;  // units in it
    bool touched = false;
    bool used = false;
    size_t gives = 0;
  };

  void Take(const Block& block) {
    chosen_.insert(chosen_.end(), block.units.begin(), block.units.end());
  }

  // Smaller is better; the earlier part wins a tie.
  static std::tuple<bool, bool, size_t> Rank(const Part& part, size_t want) {
    const bool suffices = part.gives == want;
    return {!part.touched, !suffices, suffices ? part.free : want - part.gives};
  }

  bool Touched(const Place& place, size_t level) const {
    return std::ranges::any_of(taken_, [&](const Place& taken) {
      return taken.size() > level && place.size() > level &&
             std::equal(place.begin(), place.begin() + static_cast<std::ptrdiff_t>(level) + 1,
                        taken.begin());
    });
  }

  // A block whose place ends above this level is a part of its own.
  std::vector<Part> Split(std::span<const Block* const> blocks, size_t level) const {
    std::vector<Part> parts;
    std::map<std::string_view, size_t> by_step;
    for (const Block* block : blocks) {
      size_t at = parts.size();
      if (block->place.size() > level) at = by_step.emplace(block->place[level], at).first->second;
      if (at == parts.size()) parts.push_back({.touched = Touched(block->place, level)});
      parts[at].blocks.push_back(block);
      parts[at].free += block->units.size();
    }
    return parts;
  }

  std::vector<Place> taken_;
  std::vector<size_t> chosen_;
};

// The units in play: what is free, what is given in any case, and the groups that are broken up
// already since some of their units are neither.
struct Field {
  std::set<size_t> available;  // without `must`
  std::set<size_t> must;
  std::set<int> broken;
  std::map<size_t, int> regions;  // the number of a unit's whole EGM region; below 0
};

// What a unit had better stay together with: its region, else its group.
int TieOf(const IndexedOffer& offer, const Field& field, size_t position) {
  const auto region = field.regions.find(position);
  return region == field.regions.end() ? offer.unit(position).group : region->second;
}

// Regions that can be had whole. Of one that is broken up nobody gets the memory any more, so its
// units are like others; and where a group has several units, the group is what matters.
void AddRegions(const IndexedOffer& offer, Field& field) {
  std::map<int, int> of_group;
  for (const OfferedUnit& unit : offer.offer().units) ++of_group[unit.group];
  int number = 0;
  for (const EgmShare& share : offer.offer().egm) {
    --number;
    std::map<size_t, int> whole;
    for (const std::string& id : share.units) {
      const std::optional<size_t> found = offer.Find(id);
      if (!found || of_group[offer.unit(*found).group] > 1) break;
      if (field.available.contains(*found) || field.must.contains(*found)) whole[*found] = number;
    }
    if (whole.size() == share.units.size()) field.regions.merge(whole);
  }
}

// Nothing where an id of `must` is unknown: then no answer can be right.
std::optional<Field> MakeField(const IndexedOffer& offer, const Preference& wanted) {
  Field field;
  for (const std::string& id : wanted.must) {
    const std::optional<size_t> found = offer.Find(id);
    if (!found) return std::nullopt;
    field.must.insert(*found);
  }
  for (const std::string& id : wanted.available) {
    const std::optional<size_t> found = offer.Find(id);
    // The kubelet may not have heard yet that a unit is not healthy any more.
    if (!found || !offer.unit(*found).healthy || field.must.contains(*found)) continue;
    field.available.insert(*found);
  }
  for (size_t i = 0; i < offer.offer().units.size(); ++i) {
    if (!field.available.contains(i) && !field.must.contains(i)) {
      field.broken.insert(offer.unit(i).group);
    }
  }
  if (!offer.offer().egm.empty()) AddRegions(offer, field);
  return field;
}

// How much of a wish is given up to reach the number.
enum class Care { kWholeGroups, kIntactGroups, kAnyUnit };

std::vector<Block> MakeBlocks(const IndexedOffer& offer, const Field& field, Care care) {
  std::vector<Block> blocks;
  std::map<int, size_t> by_number;
  for (const size_t position : field.available) {
    const OfferedUnit& unit = offer.unit(position);
    if (care != Care::kAnyUnit && field.broken.contains(unit.group)) continue;
    size_t at = blocks.size();
    if (care == Care::kWholeGroups) {
      at = by_number.emplace(TieOf(offer, field, position), at).first->second;
    }
    if (at == blocks.size()) blocks.push_back({.place = PlaceOf(unit)});
    blocks[at].units.push_back(position);
  }
  return blocks;
}

std::vector<size_t> ChooseFrom(const std::vector<Block>& blocks, std::vector<Place> taken,
                               size_t want) {
  std::vector<const Block*> pointers;
  pointers.reserve(blocks.size());
  for (const Block& block : blocks) pointers.push_back(&block);
  Chooser chooser(std::move(taken));
  chooser.Choose(pointers, 0, want);
  return chooser.chosen();
}

// Moves what is free of the groups that `must` has units of into `must`.
void CompleteGroups(const IndexedOffer& offer, size_t size, Field& field) {
  std::set<int> groups;
  for (const size_t position : field.must) groups.insert(TieOf(offer, field, position));
  for (auto next = field.available.begin(); next != field.available.end();) {
    const auto at = next++;
    if (field.must.size() == size) return;
    if (groups.contains(TieOf(offer, field, *at))) field.must.insert(field.available.extract(at));
  }
}

}  // namespace

std::vector<std::string> PreferUnits(const IndexedOffer& offer, const Preference& wanted) {
  std::optional<Field> field = MakeField(offer, wanted);
  if (field && !offer.offer().partitions.empty()) return PreferPartition(offer, wanted);
  if (!field || field->must.size() > wanted.size) return {};
  if (field->must.size() + field->available.size() < wanted.size) return {};
  CompleteGroups(offer, wanted.size, *field);
  const size_t want = wanted.size - field->must.size();
  std::vector<Place> taken;
  for (const size_t position : field->must) taken.push_back(PlaceOf(offer.unit(position)));

  std::vector<size_t> chosen;
  for (const Care care : {Care::kWholeGroups, Care::kIntactGroups, Care::kAnyUnit}) {
    if (chosen.size() == want) break;
    if (care == Care::kWholeGroups && want > kMostForGroups) continue;
    chosen = ChooseFrom(MakeBlocks(offer, *field, care), taken, want);
  }
  field->must.insert(chosen.begin(), chosen.end());
  std::vector<std::string> ids;
  for (const size_t position : field->must) ids.push_back(offer.unit(position).id);
  return ids;
}

}  // namespace vfio_agent
