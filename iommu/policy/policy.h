// Policy: what the node's owner wants, as values. agent/config.* reads it from YAML.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "iommu/policy/selector.h"

namespace vfio_agent {

enum class Companions { kSameSlot, kNone, kListed };
enum class SharedGroup { kMembers, kUnit };
// How a resource's units are given away: never in both ways at once.
enum class Serve { kDevicePlugin, kDra };

// VFs instead of whole devices: the entry's selectors name physical functions, and their virtual
// functions are the units.
struct Sriov {
  std::optional<int> vfs;  // to be made of each that has none; nullopt: those that are there
  bool operator==(const Sriov&) const = default;
};

// One kind of device of a bundle.
struct BundleMember {
  std::vector<Selector> select;
  size_t count = 0;          // 0: all that the node has
  bool same_switch = false;  // below a PCIe switch that one of the first kind is below, too
  bool operator==(const BundleMember&) const = default;
};

// One entry of `resources:`.
struct ResourceRule {
  std::string name;  // empty: by model; else the full name, "nvidia.com/whatever"
  std::string domain = "nvidia.com";
  std::vector<Selector> select;
  std::vector<Selector> exclude;
  Companions companions = Companions::kSameSlot;
  std::vector<Selector> companion_list;  // for kListed
  std::vector<Selector> allow_members;
  SharedGroup shared_group = SharedGroup::kMembers;
  std::string vfio_driver = "auto";  // auto, or a driver's name
  bool numa = true;
  std::optional<Sriov> sriov;
  std::string preset;  // whose values were filled in; empty: none
  std::string suffix;  // behind names by model: "_PT"
  // For a device of a NUMA node without processors, the nearest node with some.
  bool numa_nearest = false;
  bool noiommu = false;  // also where nothing isolates the guest
  // One unit is all of these together; the first is the kind that is counted. `select` then has
  // the selectors of all of them. Empty: each device is a unit.
  std::vector<BundleMember> bundle;
  // Each device of a bundle has an id of its own, and only whole bundles are given.
  bool bundle_by_device = false;
  // The sets in which several units may be given to one container; each item is an address, or
  // the number of a unit in the order of their addresses. Empty: any.
  std::vector<std::vector<std::string>> partitions;
  Serve serve = Serve::kDevicePlugin;
  bool operator==(const ResourceRule&) const = default;
};

// kEach: the counts are for each parent. Otherwise they are for all parents of the entry together,
// dealt out to the parent with the fewest; kNuma: first to the NUMA node with the fewest.
enum class MdevSpread { kEach, kRoundRobin, kNuma };

struct MdevCount {
  std::string type;  // name ("GRID T4-1Q") or id ("nvidia-222"; of `vgpu:` "1145")
  int count = 0;     // how many there shall be; 0: only those that others make are offered
  bool operator==(const MdevCount&) const = default;
};

// One entry of `mdev:`, or of `vgpu:`, whose parents are physical functions.
struct MdevRule {
  std::vector<Selector> parents;
  std::vector<MdevCount> types;  // in the file's order, in which they are made
  MdevSpread spread = MdevSpread::kEach;
  std::string domain = "nvidia.com";
  // Of `vgpu:`: what types are called that the driver lists no more, since the card is full.
  std::map<int, std::string> names;
  Serve serve = Serve::kDevicePlugin;
  bool operator==(const MdevRule&) const = default;
};

struct Policy {
  std::vector<ResourceRule> resources;
  std::map<std::string, std::string> aliases;  // "10de:3182" -> model name
  std::set<PciAddress> guard_override;
  bool iommufd = false;  // guests are given /dev/iommu and cdevs, so that these suffice
  std::vector<MdevRule> mdev;
  std::vector<MdevRule> vgpu;
  bool operator==(const Policy&) const = default;
};

// The built-in policy: NVIDIA display and 3D controllers, named by model.
Policy DefaultPolicy();

}  // namespace vfio_agent
