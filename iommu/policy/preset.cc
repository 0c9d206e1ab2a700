#include "iommu/policy/preset.h"

#include <algorithm>
#include <string>

#include "sysfs/proc_text.h"

namespace vfio_agent {
namespace {

constexpr std::array kPresets = std::to_array<Preset>({
    {.name = "nvidia",
     .domain = "nvidia.com",
     .suffix = "",
     .select = {{{0x10de, "0300 0302"}}},
     .exclude = "",
     .holders = "nvidia-persiste nv-fabricmanage nv-hostengine dcgm-exporter nvidia-device-p",
     .note = "NVSwitches are not selected; a board with its own is an entry with bundle:."},
    {.name = "amd",
     .domain = "amd.com",
     .suffix = "",
     .select = {{{0x1002, "1200 0302 0380"}}},
     .exclude = "",
     .holders = "gpuagent k8s-device-plug amd-smi rocm-smi",
     .note = "Instinct accelerators; a Radeon (class 0300) needs a select of its own. Some have no "
             "reset but that of the bus, so that a second guest may find one as the first left it: "
             "`plan` warns of those (no-reset, shared-bus-reset)."},
    // Class 1200 of 8086 is left out: there it is the NPU of desktop processors, which is the
    // host's.
    {.name = "intel",
     .domain = "intel.com",
     .suffix = "",
     .select = {{{0x8086, "0380"}, {0x1da3, "1200"}}},
     .exclude = "0000:00:02.0",
     .holders = "xpumd intel_gpu_top hl-smi",
     .note = "Flex, Max and Gaudi. The processor's own adapter (0000:00:02.0) is never meant, nor "
             "an Arc (class 0300)."},
    {.name = "rebellions",
     .domain = "rebellions.ai",
     .suffix = "_PT",
     .select = {{{0x1eff, "1200"}}},
     .exclude = "",
     .holders = "rbln-",
     .note = "The suffix keeps machines' resources apart from those of containers. pci.ids may not "
             "know the models: name them in `aliases`."},
    // No vendor's domain, since any vendor's drives are meant, and no domain that is anybody's.
    {.name = "nvme",
     .domain = "nvme.internal",
     .suffix = "",
     .select = {{{0, "0108"}}},
     .exclude = "",
     .holders = "multipathd",
     .note =
         "Every drive of the node that the host does not use at that moment: exclude those that "
         "it is to keep. A guest can read what the last one wrote."},
    {.name = "mellanox",
     .domain = "mellanox.com",
     .suffix = "",
     .select = {{{0x15b3, "0207 0200"}}},
     .exclude = "",
     .holders = "opensm ibacm",
     .note = "Whole adapters; one whose port the host's network uses is refused."},
});

}  // namespace

std::span<const Preset> Presets() { return kPresets; }

const Preset* FindPreset(std::string_view name) {
  const auto found = std::ranges::find(kPresets, name, &Preset::name);
  return found == kPresets.end() ? nullptr : &*found;
}

ResourceRule RuleOf(const Preset& preset) {
  ResourceRule rule;
  rule.domain = preset.domain;
  rule.preset = preset.name;
  rule.suffix = preset.suffix;
  for (const PresetMatch& match : preset.select) {
    if (match.classes.empty()) continue;
    Selector selector;
    if (match.vendor != 0) selector.vendor = match.vendor;
    for (const std::string_view word : Fields(match.classes)) selector.classes.emplace_back(word);
    rule.select.push_back(std::move(selector));
  }
  if (!preset.exclude.empty()) {
    rule.exclude.push_back({.address = *PciAddress::Parse(preset.exclude)});
  }
  return rule;
}

}  // namespace vfio_agent
