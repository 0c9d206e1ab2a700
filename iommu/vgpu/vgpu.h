// SR-IOV vGPUs in planning: virtual functions that stay on their vendor's driver and are guests'
// devices for as long as they have a vGPU type. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "iommu/plan/condition.h"
#include "iommu/plan/planning.h"

namespace vfio_agent {

// The entry of `vgpu:` that has the physical function `device` for a parent, or null: a display or
// 3D controller. Such a device is no resource itself: it stays with its driver, and so do its
// virtual functions.
const MdevRule* FindVgpuRule(const Policy& policy, const PciDevice& device);

// What keeps `device` from being a whole device: "mdev[0].parent" or "vgpu[1].parent"; empty for
// nothing. The latter has also what is beside a card's controller, such as its sound.
std::string ParentEntry(const Policy& policy, const PciDevice& device);
// The device's own driver gives it to guests, or the controller beside it: there is such an entry.
bool StaysWithDriver(const Policy& policy, const PciDevice& device);

// True for a virtual function that has a type, or of which that cannot be told.
bool MayBeVgpu(const NodeFacts& facts, const PciAddress& address);

// A virtual function of which the type that it has is to be taken away: no unit any more. Its
// group's vgpu_type is "0" then.
bool TakesVgpuAway(const GroupPlan& group);

// The type that a function has: 0 for none; nullopt where it cannot be read. What this agent
// has given, or else what it had last, counts where the kernel does not say.
std::optional<int> VgpuTypeOf(const VgpuFunction& function, const Records& records);

// The type that it has now was set by this agent in this boot.
bool IsOwnVgpu(const VgpuFunction& function, const Records& records);

// The names of types by id: the configuration's first, for they are there to stay the same, then
// what any function lists now, then what the journal has kept of when they were listed.
using VgpuNames = std::map<int, std::string>;
VgpuNames NamesOfVgpus(const NodeFacts& facts, const Records& records, const Policy& policy);

// A rule of resources[]: what is a vGPU, or belongs to a parent of `vgpu:`, is not bound to
// vfio-pci.
void RefuseVgpu(const Context& context, Draft& draft, size_t i);

// Adds to a finished plan what the entries of `vgpu:` ask for: the steps and the verdict of the
// virtual functions' groups, and resources with a unit for each function that has a type. A type
// that this agent has set, and that is more than the entry asks for, is taken away where nobody has
// the function.
void PlanVgpus(const Context& context, Plan& plan);

// The state of the unit that is `device`, in a group of its own, with a type.
Condition ConditionOfVgpu(const PciDevice& device, const VgpuFunction& function,
                          const std::string& resource, const std::vector<PodClaim>& pods,
                          const Tenants& tenants, const Context& context);

// What takes the type that `record` tells of from its function: nothing where it has another.
void AddVgpuReturn(const NodeFacts& facts, const Record& record, std::vector<Action>& actions);

}  // namespace vfio_agent
