// Condition: what state a unit is in and why. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "iommu/plan/planning.h"

namespace vfio_agent {

// Tenancy by what planning asks for.
class Tenants {
 public:
  // `custody` outlives the object. Without tenancy nobody has looked, so nobody has anything.
  explicit Tenants(const Custody& custody);

  // Pods that have the unit of this name, under whatever resource.
  std::vector<PodClaim> PodsOf(const PciAddress& unit) const;
  std::vector<PodClaim> PodsOf(const std::string& unit) const;
  // The claim for another unit that had `device` as a part when it was given; null for none. The
  // kubelet counts the device's own id as free.
  const PodClaim* WhoHasAsPart(const PciAddress& device) const;
  bool IsGranted(const PciAddress& unit) const { return IsGranted(unit.ToString()); }
  bool IsGranted(const std::string& unit) const { return granted_.contains(unit); }
  // The processes that have `group` open; null for none.
  const std::vector<Holder>* HoldersOf(int group) const;
  // Why it is not known which pods have what; empty where it is.
  std::string WhyUnknown() const;

 private:
  const Tenancy* tenancy_;
  std::multimap<std::string, const PodClaim*> pods_;  // by unit
  std::map<PciAddress, const PodClaim*> parts_;       // by what is no id of its own there
  std::set<std::string> granted_;                     // units
};

struct Condition {
  UnitState state = UnitState::kRefused;
  std::string reason;
};

// What pods that have a unit of `resource` make of it: held by one that the kubelet lists, or
// refused since it has it as another resource. nullopt: nobody, or somebody perhaps, who counts
// where nothing else is known of the unit.
std::optional<Condition> ConditionByClaims(const std::vector<PodClaim>& pods,
                                           const std::string& resource);

// The state of the unit whose primary function is `primary`. `pods`: those that have it.
Condition ConditionOf(const Draft& draft, const PciDevice& primary,
                      const std::vector<PodClaim>& pods, const Tenants& tenants,
                      const Context& context);

// The state of one group of the unit that pods know as `unit`; `part` is the group's first function
// of it.
Condition ConditionOfPart(const Draft& draft, const PciDevice& part, const PciAddress& unit,
                          const std::vector<PodClaim>& pods, const Tenants& tenants,
                          const Context& context);

// The state of the unit that is a mediated device, offered as `resource`.
Condition ConditionOfMdev(const MdevInstance& mdev, const std::string& resource,
                          const std::vector<PodClaim>& pods, const Tenants& tenants,
                          const NodeFacts& facts, const Policy& policy);

// The state of a unit that has a group to itself and is whole in itself, by who has it.
Condition ConditionOfLone(const std::string& unit, int group, const std::string& resource,
                          const std::vector<PodClaim>& pods, const Tenants& tenants);

// The fatal PCIe errors of `device` since it was looked at first, in a sentence; else empty.
std::string WhatFailedFatally(const PciDevice& device, const Context& context);

// "pod team/vm (container compute)", "ResourceClaim team/vm-gpu".
std::string Spell(const PodClaim& claim);

}  // namespace vfio_agent
