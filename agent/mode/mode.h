// Mode: what a node's devices are for: containers, whole for machines, or cut into vGPUs. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "iommu/plan/plan.h"

namespace vfio_agent {

// What they give away: ModeUse.
enum class Mode { kContainer, kPassthrough, kVgpu };

// "container", "vm-passthrough", "vm-vgpu".
std::string_view Name(Mode mode);
std::optional<Mode> FindMode(std::string_view name);

// The key `mode:` of the configuration.
struct ModeRule {
  Mode mode = Mode::kPassthrough;      // or, where a label decides, what counts without a good one
  std::string label;                   // the node label that decides; empty: none does
  std::map<std::string, Mode> values;  // what the label may say
  absl::Duration settle = absl::Seconds(10);  // how long a label must stay the same to count
  // How long a switch waits for those who have something before it counts as blocked; zero: it
  // never does.
  absl::Duration wait_for_holders;
  bool operator==(const ModeRule&) const = default;
};

// What a mode gives to machines: what `resources` selects, and what `mdev` and `vgpu` make. In
// container it is neither, and what the agent has taken goes back; in vm-vgpu vGPUs alone; in
// vm-passthrough both. Where a label decides it is `resources` alone, so that the same cards can be
// whole in the one mode and cut in the other.
struct ModeUse {
  bool devices = true;
  bool vgpus = true;
  bool operator==(const ModeUse&) const = default;
};
ModeUse UseIn(Mode mode, const ModeRule& rule);

// The part of `whole` that counts for this use.
Policy PolicyFor(const ModeUse& use, const Policy& whole);

// False for a unit that is not offered for this use.
bool HasUseFor(const ModeUse& use, const Unit& unit);

// Withholds what the mode `next` has no use for: no such unit is healthy in the kubelet's eyes any
// more.
void Withhold(Mode next, const ModeUse& use, Plan& plan);

}  // namespace vfio_agent
