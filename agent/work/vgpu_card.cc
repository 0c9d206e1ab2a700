#include "agent/work/vgpu_card.h"

#include <algorithm>
#include <string>
#include <vector>

#include "agent/work/driver_reader.h"
#include "sysfs/device/vgpu.h"
#include "sysfs/paths.h"
#include "sysfs/tree.h"

namespace vfio_agent {
namespace {

// The vGPU type that is set by `job`; null for other jobs.
const SetVgpuType* VgpuOf(const Job& job) {
  for (const Action& action : job.actions) {
    const auto* const vgpu = std::get_if<SetVgpuType>(&action);
    if (vgpu != nullptr && vgpu->type != 0) return vgpu;
  }
  return nullptr;
}

// The physical function; the function itself where the tree does not tell.
PciAddress CardOf(const Tree& tree, const PciAddress& function) {
  const absl::StatusOr<std::string> name = tree.ReadLinkName(DeviceDir(function) + "/physfn");
  const auto address = PciAddress::Parse(name.ok() ? *name : "");
  return address.ok() ? *address : function;
}

}  // namespace

std::optional<PciAddress> VgpuFunctionOf(const Job& job) {
  const SetVgpuType* const vgpu = VgpuOf(job);
  return vgpu == nullptr ? std::nullopt : std::optional(vgpu->device);
}

bool WaitsForCard(const Job& job, const Jobs& jobs, const Tree& tree) {
  const SetVgpuType* const vgpu = VgpuOf(job);
  return vgpu != nullptr && std::ranges::any_of(jobs.AtWork(), [&](const Job* other) {
           const SetVgpuType* const begun = VgpuOf(*other);
           return begun != nullptr && CardOf(tree, begun->device) == CardOf(tree, vgpu->device);
         });
}

VgpuCards::VgpuCards(const Tree& tree) : tree_(tree), ask_(AskWithDeadline(tree.root())) {}

bool VgpuCards::IsFull(const Job& job) {
  const SetVgpuType* const vgpu = VgpuOf(job);
  if (vgpu == nullptr) return false;
  const PciAddress card = CardOf(tree_, vgpu->device);
  if (begun_.insert(card).second) return false;  // as the plan has it
  const std::string path = CreatableVgpusPath(vgpu->device);
  const absl::StatusOr<std::string> text =
      TextOf(ask_({{.device = vgpu->device, .card = card, .path = path}}), path);
  std::vector<std::string> skipped;
  return text.ok() &&
         std::ranges::count(ParseVgpuTypes(*text, path, skipped), vgpu->type, &VgpuType::id) == 0;
}

}  // namespace vfio_agent
