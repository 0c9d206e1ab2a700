// Mediated devices in planning: which are made, which are offered, which are ours to remove. Pure.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "iommu/plan/planning.h"
#include "iommu/plan/release.h"

namespace vfio_agent {

// The uuid of the index-th instance of `type` on `parent`: always the same, and made up of nothing
// else, so that pods find theirs again after a reboot and no journal has to say what is ours.
// A UUID of version 8 (RFC 9562): domain, bus and function can be read from it.
std::string MdevUuid(const PciAddress& parent, std::string_view type, int index);

// The first of those on its parent that `taken` has not.
std::string FreeMdevUuid(const PciAddress& parent, std::string_view type,
                         const std::vector<std::string>& taken);

// True for an instance with a uuid that this program gives: only these are ever removed.
bool IsOwnMdev(const MdevInstance& mdev);

// "GRID T4-1Q" -> "GRID_T4-1Q", as NVIDIA's plugin does it: each run of white space to one '_',
// case and hyphens kept. What the kubelet would reject is mended as in ModelResourceName().
std::string MdevTypeResourceName(std::string_view type);

// What a type is called: by its id where the driver tells no name.
std::string MdevTypeName(const MdevType& type);
std::string TypeNames(const MdevParent& parent);  // "GRID T4-1Q, GRID T4-2Q"
// "nvidia.com/GRID_T4-1Q"
std::string MdevResourceName(const MdevRule& rule, const MdevType& type);

// One without units yet, of `card`.
Resource EmptyResource(const MdevRule& rule, const std::string& name, const PciDevice& card);
// Why an entry's instances cannot be in `resource` as well, and what to do about it.
std::string OtherwiseServed(const Resource& resource);
inline constexpr char kServeRemedy[] =
    "give one of the two entries another `domain`, or both the same `serve`";

// "MDEV_PCI_RESOURCE_NVIDIA_COM_GRID_T4-1Q": KubeVirt's variable for uuids.
std::string MdevVariable(std::string_view resource);

// The first of `rules` that has `device` for a parent, or null.
const MdevRule* FindParentRule(const std::vector<MdevRule>& rules, const PciDevice& device);

// A display or 3D controller: what cards with vGPUs are.
inline bool IsDisplay(const PciDevice& device) { return device.class_code >> 16 == 0x03; }

// The entry of `mdev:` that has `device` for a parent, or null. Such a device is no resource
// itself: it stays with its driver.
const MdevRule* FindMdevRule(const Policy& policy, const PciDevice& device);

// Adds to a finished plan what the entries of `mdev:` ask for: the steps and the verdict of the
// parents' groups, and resources with a unit for each instance. Never more than the kernel says it
// has room for.
void PlanMdevs(const Context& context, Plan& plan);

// To remove those of this program's instances that `wanted` has; one for each, by its group.
// What a pod or a process has is refused (`held`). Needs custody.inquiry.
std::vector<GroupRelease> PlanMdevRelease(const NodeFacts& facts, const Custody& custody,
                                          const std::set<std::string>& wanted);

// This program's instances, by uuid; and those of them that are offered as `resource`, nullopt
// where that is no resource of mediated devices.
std::set<std::string> OwnMdevs(const NodeFacts& facts);
std::optional<std::set<std::string>> OwnMdevsOf(const NodeFacts& facts,
                                                const std::vector<Resource>& resources,
                                                std::string_view resource);

// The instance that a SELECTOR means, "83b8f4f2-…" or "group:40", where it is below a PCI function;
// null for others.
const MdevInstance* MdevMeant(const NodeFacts& facts, std::string_view selector);

// Parents that have an instance of ours.
std::vector<PciAddress> ParentsOfOwnMdevs(const NodeFacts& facts);

}  // namespace vfio_agent
