// What of each text is kept. Pure but for the masker's numbers.
#pragma once

#include <string>
#include <string_view>

#include "agent/snapshot/masker.h"

namespace vfio_agent {

// Of a PCI function's config space: the header, which capabilities there are, and of those that
// tell what the function can do (PCI Express, ACS, ARI, SR-IOV, power, Advanced Features) the
// registers. All else is zero: serial numbers, vital product data, what vendors keep there.
std::string MaskConfigSpace(std::string_view bytes, Masker& masker);

// Parts of a path that are the same on every node stay, all others get other names.
std::string MaskPath(std::string_view path, Masker& masker);
std::string MaskOpenFile(std::string_view target, Masker& masker);  // a descriptor's
// Of paths below the root. Where the kernel gives the names: the ids within them, and the names of
// ZFS pools; elsewhere as MaskPath().
std::string MaskPlace(std::string_view path, Masker& masker);
// Of a path whose names are the kernel's, or of one such name.
std::string MaskParts(std::string_view path, Masker& masker);
std::string MaskTarget(std::string_view link, std::string_view target, Masker& masker);
// What was said about `path`: it, the directories above it and other paths as MaskPlace() has them.
std::string MaskMessage(std::string_view text, std::string_view path, Masker& masker);

std::string MaskHex(std::string_view text, Masker& masker);
std::string MaskIds(std::string_view text, Masker& masker);
std::string MaskWords(std::string_view text, Masker& masker);  // each of them
std::string MaskName(std::string_view text, Masker& masker);   // one, as MaskPath() has it
std::string DropAll(std::string_view text, Masker& masker);

// proc/cmdline: the words that this program and its users care about; of the others the names.
std::string MaskCommandLine(std::string_view text, Masker& masker);
std::string MaskMounts(std::string_view mountinfo, Masker& masker);
std::string MaskSwaps(std::string_view swaps, Masker& masker);
std::string MaskRoutes(std::string_view route, Masker& masker);
std::string MaskRoutes6(std::string_view ipv6_route, Masker& masker);
std::string MaskAddresses6(std::string_view if_inet6, Masker& masker);
// proc/<pid>/comm: the names of well-known programs; of others, which a process chooses, nothing.
std::string MaskProgram(std::string_view comm, Masker& masker);
std::string MaskCgroup(std::string_view cgroup, Masker& masker);
std::string MaskRecord(std::string_view record, Masker& masker);  // the journal's

// Of the kubelet: the flags and keys that bear on devices, swap and resource managers. Anything
// else that stands in the same files may be a secret.
std::string KeepKubeletArguments(std::string_view cmdline, Masker& masker);  // proc/<pid>/cmdline
std::string KeepKubeletFlags(std::string_view unit, Masker& masker);   // of a unit, or environment
std::string KeepKubeletKeys(std::string_view config, Masker& masker);  // YAML or JSON
std::string KeepPolicy(std::string_view state, Masker& masker);        // of a resource manager
std::string EmptyObject(std::string_view json, Masker& masker);

// Lines that nobody needs.
std::string KeepNode(std::string_view uevent, Masker& masker);
std::string KeepCard(std::string_view information, Masker& masker);  // NVIDIA's
std::string KeepVfioAliases(std::string_view modules_alias, Masker& masker);
std::string KeepModuleRules(std::string_view modprobe_d, Masker& masker);
std::string DropKernelPlace(std::string_view iomem, Masker& masker);

}  // namespace vfio_agent
