// Presets: what is known of a vendor's devices, as the entry of `resources:` that serves them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "iommu/policy/policy.h"

namespace vfio_agent {

// One item of a preset's `select:`.
struct PresetMatch {
  uint16_t vendor = 0;       // 0: any
  std::string_view classes;  // as configuration has them, with blanks between; empty: no item
};

// One row is one vendor: everything that the program knows of it stands here.
struct Preset {
  std::string_view name;    // of the key `preset`
  std::string_view domain;  // of names by model
  std::string_view suffix;  // behind names by model; empty: none
  std::array<PresetMatch, 2> select;
  std::string_view exclude;  // an address; empty: none
  // The programs that are known to keep such devices open, as proc/<pid>/comm begins, with blanks
  // between. What to do about each is in sysfs/use/process_use.cc.
  std::string_view holders;
  std::string_view note;  // what an operator should know: whole sentences
};

std::span<const Preset> Presets();

// Null for none of that name.
const Preset* FindPreset(std::string_view name);

// The entry that `preset: NAME` alone stands for.
ResourceRule RuleOf(const Preset& preset);

}  // namespace vfio_agent
