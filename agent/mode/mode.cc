#include "agent/mode/mode.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_format.h"
#include "agent/mode/mode_words.h"

namespace vfio_agent {
namespace {

struct ModeName {
  Mode mode;
  std::string_view name;
};
constexpr std::array<ModeName, 3> kNames = {{{Mode::kContainer, "container"},
                                             {Mode::kPassthrough, "vm-passthrough"},
                                             {Mode::kVgpu, "vm-vgpu"}}};

}  // namespace

std::string_view Name(Mode mode) { return std::ranges::find(kNames, mode, &ModeName::mode)->name; }

std::optional<Mode> FindMode(std::string_view name) {
  const auto* const found = std::ranges::find(kNames, name, &ModeName::name);
  return found == kNames.end() ? std::nullopt : std::optional(found->mode);
}

ModeUse UseIn(Mode mode, const ModeRule& rule) {
  return {.devices = mode == Mode::kPassthrough,
          .vgpus = mode == Mode::kVgpu || (mode == Mode::kPassthrough && rule.label.empty())};
}

Policy PolicyFor(const ModeUse& use, const Policy& whole) {
  Policy policy = whole;
  if (!use.devices) policy.resources.clear();
  if (!use.vgpus) {
    policy.mdev.clear();
    policy.vgpu.clear();
  }
  return policy;
}

bool HasUseFor(const ModeUse& use, const Unit& unit) {
  const bool whole = unit.mdev_type.empty() && unit.vgpu_type.empty();
  return whole ? use.devices : use.vgpus;
}

void Withhold(Mode next, const ModeUse& use, Plan& plan) {
  for (Resource& resource : plan.resources) {
    for (Unit& unit : resource.units) {
      const bool given = unit.state == UnitState::kReady || unit.state == UnitState::kHeld;
      if (!given || HasUseFor(use, unit)) continue;
      unit.kept = unit.state == UnitState::kHeld;
      unit.state = UnitState::kWithheld;
      unit.reason = absl::StrFormat("%sswitching to %s", kWithheldByMode, Name(next));
    }
  }
}

}  // namespace vfio_agent
