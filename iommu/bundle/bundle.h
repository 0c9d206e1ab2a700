// Bundle: several devices of several groups as one unit: a board's GPUs with its NVSwitches, a GPU
// with the NIC under its switch. Pure.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "iommu/plan/condition.h"

namespace vfio_agent {

// One unit, or what would be one if something were not missing.
struct Bundle {
  std::vector<const PciDevice*> devices;                 // by kind as configured, then by address
  std::vector<size_t> drafts;                            // that the devices are in, ascending
  std::vector<std::pair<PciAddress, PciAddress>> pairs;  // as Unit::pairs
  std::string fault;                                     // why it is none; empty for a whole one
  bool left_over = false;                                // no unit has a use for it
};

// The bundles of `rule` out of the primaries of those drafts that are its: every primary is in
// exactly one of them, and the primaries of one group are never apart.
//
// The first kind decides: the free device with the lowest address, and those nearest to it until
// the count is reached. To these come the other kinds, nearest first. What is refused for another
// reason is counted all the same, so that a fault of one device does not deal the others anew.
//
// Of a kind of which a bundle takes all, a device belongs to the bundle that it shares a PCIe
// switch with, or to the only one there is. One that two would have a claim to makes both faulty:
// half of a board is nobody's.
std::vector<Bundle> ComposeBundles(const std::vector<Draft>& drafts, const ResourceRule& rule,
                                   const NodeFacts& facts);

// Refuses the groups of all bundles that are not whole, or of which a part is refused.
void RefuseBrokenBundles(std::vector<Draft>& drafts, const Context& context);

// The units that a bundle of `rule` is offered as: one, or with bundle_by_device one for each
// device.
std::vector<Unit> UnitsOfBundle(const std::vector<Draft>& drafts, const ResourceRule& rule,
                                const Bundle& bundle, const Tenants& tenants,
                                const Context& context);

// The others of each bundle, as it is composed now.
Parts PartsOf(const std::vector<Draft>& drafts, const Policy& policy, const NodeFacts& facts);
Parts PartsOf(const std::vector<Resource>& resources);

}  // namespace vfio_agent
