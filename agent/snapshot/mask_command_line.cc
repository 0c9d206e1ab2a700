#include <fnmatch.h>

#include <algorithm>
#include <array>

#include "agent/snapshot/mask_text.h"
#include "sysfs/proc_text.h"

namespace vfio_agent {
namespace {

// Words and names of parameters that bear on devices, virtual machines and memory; patterns of
// fnmatch(3).
constexpr std::array kTold = std::to_array<const char*>({
    "ro",
    "rw",
    "quiet",
    "splash",
    "debug",
    "single",
    "nomodeset",
    "nosmt",
    "nopti",
    "noiommu",
    "*iommu*",
    "amd_iommu*",
    "intel_iommu*",
    "arm-smmu*",
    "vfio*",
    "pcie_*",
    "pci",
    "pci=*",
    "acs_*",
    "nvidia*",
    "nouveau*",
    "modprobe.blacklist",
    "module_blacklist",
    "rd.driver.*",
    "initcall_blacklist",
    "video",
    "vga",
    "efifb*",
    "simpledrm*",
    "hugepages*",
    "default_hugepagesz",
    "transparent_hugepage",
    "numa*",
    "isolcpus",
    "nohz*",
    "rcu_nocb*",
    "irqaffinity",
    "mitigations",
    "kvm*",
    "mem",
    "mem_encrypt",
    "kvm_amd*",
    "swapaccount",
    "systemd.swap",
    "zswap*",
    "cgroup_*",
    "systemd.unified_cgroup_hierarchy",
    "lockdown",
    "amdgpu*",
    "radeon*",
    "i915*",
    "xe.*",
    "ast.*",
    "mgag200*",
    "snd_hda_intel*",
    "mlx5*",
    "nvme*",
    "processor.*",
    "intel_idle*",
    "intremap",
    "x2apic*",
    "nox2apic",
    "realloc*",
    "crashkernel",
    "console",
    "tsc",
    "clocksource",
    "preempt",
    "audit",
    "selinux",
    "apparmor",
});

bool IsTold(const std::string& name) {
  return std::ranges::any_of(
      kTold, [&name](const char* pattern) { return ::fnmatch(pattern, name.c_str(), 0) == 0; });
}

std::string MaskArgument(std::string_view word, Masker& masker) {
  const size_t equals = word.find('=');
  const std::string name(word.substr(0, equals));
  if (IsTold(name)) return std::string(word);
  if (equals == std::string_view::npos) return masker.Word(word);
  // Names of parameters are the kernel's and systemd's.
  return name + "=" + masker.Word(word.substr(equals + 1));
}

}  // namespace

std::string MaskCommandLine(std::string_view text, Masker& masker) {
  std::string masked;
  for (const std::string_view line : Lines(text)) {
    std::string words;
    for (const std::string_view word : Fields(line)) {
      words += (words.empty() ? "" : " ") + MaskArgument(word, masker);
    }
    masked += words + "\n";
  }
  return masked;
}

}  // namespace vfio_agent
