// Which types of ours are more than an entry of `vgpu:` asks for.
#include <algorithm>
#include <span>
#include <tuple>

#include "iommu/vgpu/vgpu_slots.h"

namespace vfio_agent {
namespace {

// A function with a type of ours that may be one too many.
struct Spare {
  VgpuSlot* slot = nullptr;
  const PciDevice* device = nullptr;
  bool busy = false;  // somebody is at work on it: it may be going already
  std::string users;  // who has it
};

class SurplusFinder {
 public:
  SurplusFinder(const Context& context, const MdevRule& rule, std::vector<VgpuSlot>& slots)
      : context_(context), rule_(rule), slots_(slots) {}

  void Find(const VgpuNames& names) {
    std::map<int, int> wanted;  // a type that is named twice: the entry is refused for that
    for (const MdevCount& count : rule_.types) {
      const std::optional<int> id = FindVgpuType(names, count.type);
      if (id) wanted[*id] = std::max(wanted[*id], count.count);
    }
    for (const int type : OwnTypes()) {
      const auto found = wanted.find(type);
      const int count = found == wanted.end() ? 0 : found->second;
      if (rule_.spread != MdevSpread::kEach) {
        Thin(slots_, type, count);
        continue;
      }
      for (VgpuSlot& slot : slots_) Thin(std::span(&slot, 1), type, count);
    }
  }

 private:
  std::set<int> OwnTypes() const {
    std::set<int> types;
    for (const VgpuSlot& slot : slots_) {
      for (const VgpuFunction* function : slot.functions) {
        if (IsOwnVgpu(*function, context_.custody.records)) types.insert(function->current.value());
      }
    }
    return types;
  }

  bool IsBusy(int group) const {
    const Underway& underway = context_.custody.underway;
    return underway.at_work.contains(group) || underway.stuck.contains(group) ||
           underway.elsewhere.contains(group);
  }

  // Counts those of the type on each card.
  std::vector<Spare> SparesOf(std::span<VgpuSlot> slots, int type) {
    std::vector<Spare> spares;
    for (VgpuSlot& slot : slots) {
      for (const VgpuFunction* function : slot.functions) {
        if (VgpuTypeOf(*function, context_.custody.records) != type) continue;
        ++have_[&slot];
        const PciDevice* const device = FindDevice(context_.facts, function->address);
        const bool ours = IsOwnVgpu(*function, context_.custody.records);
        // Beside another manager that would set it again nothing is taken away.
        if (!ours || !device->group || slot.rival) continue;
        Spare spare{.slot = &slot, .device = device, .busy = IsBusy(*device->group)};
        if (!spare.busy && context_.custody.inquiry) {
          spare.users = WhyHeld(context_.custody, context_.facts, *device->group);
        }
        spares.push_back(std::move(spare));
      }
    }
    return spares;
  }

  // Which of two goes first: what is going, then what nobody has; from where there are most, the
  // highest address, so that those stay that were set first.
  bool GoesLater(const Spare& one, const Spare& other) const {
    const auto rank = [this](const Spare& spare) {
      int on_node = 0;
      for (const auto& [slot, have] : have_) {
        if (slot->physical->numa_node == spare.slot->physical->numa_node) on_node += have;
      }
      return std::tuple(spare.busy, spare.users.empty(),
                        rule_.spread == MdevSpread::kNuma ? on_node : 0, have_.at(spare.slot),
                        spare.device->address);
    };
    return rank(one) < rank(other);
  }

  void Thin(std::span<VgpuSlot> slots, int type, int count) {
    have_.clear();
    std::vector<Spare> spares = SparesOf(slots, type);
    int surplus = -count;
    for (const auto& entry : have_) surplus += entry.second;
    if (surplus <= 0) return;
    for (const Spare& spare : spares) {
      if (!spare.busy) spare.slot->asked.insert(*spare.device->group);
    }
    for (; surplus > 0 && !spares.empty(); --surplus) {
      const auto next = std::ranges::max_element(
          spares, [this](const Spare& one, const Spare& other) { return GoesLater(one, other); });
      if (next->users.empty()) {
        next->slot->going.insert(next->device->address);
      } else {
        next->slot->staying[next->device->address] = next->users;
      }
      --have_[next->slot];
      spares.erase(next);
    }
  }

  const Context& context_;
  const MdevRule& rule_;
  std::vector<VgpuSlot>& slots_;
  std::map<const VgpuSlot*, int> have_;  // of one type
};

}  // namespace

void FindVgpuSurplus(const Context& context, const MdevRule& rule, const VgpuNames& names,
                     std::vector<VgpuSlot>& slots) {
  SurplusFinder(context, rule, slots).Find(names);
}

}  // namespace vfio_agent
