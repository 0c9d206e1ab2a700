// The groups of a plan as planning of vGPUs changes them: an inner step of PlanVgpus.
#pragma once

#include <string>
#include <vector>

#include "iommu/vgpu/vgpu_slots.h"

namespace vfio_agent {

class VgpuGroups {
 public:
  // Both outlive the object.
  VgpuGroups(const Context& context, Plan& plan) : context_(context), plan_(plan) {}

  // Null for a device without a group.
  GroupPlan* Find(const PciDevice& device);
  // The physical function is the host's, and so are the others of its group.
  void NotePhysical(const PciDevice& device);
  // The function's group, with its role; refused where somebody else is in it.
  GroupPlan* Take(const PciDevice& device, int type, const std::string& resource);
  // One type too many, of a function that nobody has. Whatever else is said of it comes first.
  void TakeAway(const PciDevice& device, const std::string& resource);
  // Before a write: who has it. Not of what is underway, for even looking at that can block.
  void AskOf(int group);

  void Warn(const PciDevice& device, Refusal warning);
  void Refuse(const PciDevice& device, Refusal refusal);

 private:
  const Context& context_;
  Plan& plan_;
};

}  // namespace vfio_agent
