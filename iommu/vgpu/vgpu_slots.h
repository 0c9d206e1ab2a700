// What planning of vGPUs counts and says: inner steps of PlanVgpus. Pure.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "iommu/vgpu/vgpu.h"

namespace vfio_agent {

// A physical function of one entry, and what is planned for its virtual ones.
struct VgpuSlot {
  const PciDevice* physical = nullptr;
  std::vector<const VgpuFunction*> functions;  // in order of their addresses
  std::set<PciAddress> given;                  // those that the plan gives a type
  std::set<int> types;                         // those that the entry has named so far
  // The type that the plan gives. What room it leaves for another one only the driver knows, and
  // only afterwards: no other is given by the same plan.
  std::optional<int> giving;
  std::optional<Refusal> rival;  // why the card gets no more vGPUs while another manager runs
  // Of what is more than the entry asks for, and of ours: those whose type is taken away, and those
  // that keep it until who has them ends. `asked`: the groups of all that may be one or the other.
  std::set<PciAddress> going;
  std::map<PciAddress, std::string> staying;  // who has it
  std::set<int> asked;
  bool IsSilent() const { return Silent() != nullptr; }
  const VgpuFunction* Silent() const;  // the first whose driver does not answer, or null
};

// One type on one physical function.
struct VgpuPlace {
  VgpuSlot* slot = nullptr;
  int type = 0;
  int have = 0;
  int room = 0;
  std::vector<const PciDevice*> free;  // `room` of them, in the order in which they are given
  PciAddress Address() const { return slot->physical->address; }
  std::optional<int> Node() const { return slot->physical->numa_node; }
};

VgpuSlot SlotOf(const NodeFacts& facts, const PciDevice& physical);

// The id of a type that is written as its number or as its name; nullopt for an unknown one, and
// for a number that no name is known of: units need one.
std::optional<int> FindVgpuType(const VgpuNames& names, std::string_view wanted);

// Where `type` is, where there is room for it, and where there is room for nothing. A function that
// had it by this agent's doing comes first, then the lowest address: the same one each time.
std::vector<VgpuPlace> PlacesOf(const Context& context, int type, const VgpuNames& names,
                                std::vector<VgpuSlot>& slots);

// Reasons, without group and address; nullopt for none. Why nothing is done on a physical function;
// why a function is not written to now; why a function's group cannot be given away.
std::optional<Refusal> WhyNoSlot(const Context& context, const VgpuSlot& slot);
std::optional<Refusal> WhyNotWritten(const Context& context, const PciDevice& device);
std::optional<Refusal> WhyNotGiven(const Context& context, const PciDevice& device);

// vgpu_surplus.cc: fills in going, staying and asked of `slots`, which are those of `rule`. What
// others have set counts, and is never among them.
void FindVgpuSurplus(const Context& context, const MdevRule& rule, const VgpuNames& names,
                     std::vector<VgpuSlot>& slots);

// vgpu_words.cc. Of a type whose name nothing tells of: what is in its way, on which card.
struct UnknownVgpu {
  Refusal why;
  const PciDevice* physical = nullptr;
  bool waits = false;  // others are being taken away: no more than a warning
};
UnknownVgpu UnknownVgpuType(const Context& context, const std::string& wanted,
                            const std::vector<VgpuSlot>& slots, const VgpuNames& names);
Refusal ShortageOf(const Context& context, const VgpuPlace& place, const VgpuNames& names,
                   int missing);
// One too many, but in use.
Refusal StaysInUse(const PciAddress& function, int type, const VgpuNames& names,
                   const std::string& users);
// It has a type that the entry does not name.
Refusal NotOffered(const Context& context, const VgpuFunction& function, const VgpuNames& names);
// It has a type of ours, and no entry is about its card.
Refusal LeftBehind(const VgpuFunction& function, const VgpuNames& names);

}  // namespace vfio_agent
