// What planning of mediated devices counts: inner steps of PlanMdevs. Pure.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "iommu/mdev/mdev.h"

namespace vfio_agent {

// A parent of one entry, and what is planned for it.
struct MdevSlot {
  const MdevParent* parent = nullptr;
  const PciDevice* device = nullptr;
  std::vector<std::string> uuids;  // instances that are there or planned, whoever made them
  std::vector<Action> actions;
  std::set<std::string> types;  // ids of those that the entry has named so far
  bool IsSilent() const { return !parent->silent.empty(); }
};

// One type on one parent.
struct MdevPlace {
  MdevSlot* slot = nullptr;
  const MdevType* type = nullptr;
  int have = 0;
  int room = 0;
  PciAddress Address() const { return slot->parent->address; }
  std::optional<int> Node() const { return slot->device->numa_node; }
};

std::vector<MdevSlot> MdevSlotsOf(const Context& context, const MdevRule& rule);

// Where the type of that name or id is.
std::vector<MdevPlace> MdevPlacesOf(const Context& context, const std::string& wanted,
                                    std::vector<MdevSlot>& slots);

// Those that `rule` selects and that make no mediated devices, though nobody else of the card does:
// not the physical function of such virtual ones, not what is beside a controller of the slot, and
// of virtual functions without types the physical one alone.
std::vector<const PciDevice*> FindBarren(const Context& context, const MdevRule& rule,
                                         const std::vector<MdevSlot>& slots);
Refusal WhyBarren(const Context& context, const PciDevice& device);

// Of how many more instances are wanted than there is room for.
Refusal MdevShortageOf(const MdevPlace& place, int missing);

}  // namespace vfio_agent
