// Policy: what the node's owner wants, as values. agent/config.* reads it from YAML.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "iommu/selector.h"

namespace vfio_agent {

enum class Companions { kSameSlot, kNone, kListed };
enum class SharedGroup { kMembers, kUnit };

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
  bool operator==(const ResourceRule&) const = default;
};

// kEach: the counts are for each parent. Otherwise they are for all parents of the entry together,
// dealt out to the parent with the fewest; kNuma: first to the NUMA node with the fewest.
enum class MdevSpread { kEach, kRoundRobin, kNuma };

struct MdevCount {
  std::string type;  // name ("GRID T4-1Q") or id ("nvidia-222")
  int count = 0;     // how many there shall be; 0: only those that others make are offered
  bool operator==(const MdevCount&) const = default;
};

// One entry of `mdev:`.
struct MdevRule {
  std::vector<Selector> parents;
  std::vector<MdevCount> types;  // in the file's order, in which they are made
  MdevSpread spread = MdevSpread::kEach;
  std::string domain = "nvidia.com";
  bool operator==(const MdevRule&) const = default;
};

struct Policy {
  std::vector<ResourceRule> resources;
  std::map<std::string, std::string> aliases;  // "10de:3182" -> model name
  std::set<PciAddress> guard_override;
  bool iommufd = false;  // guests are given /dev/iommu and cdevs, so that these suffice
  std::vector<MdevRule> mdev;
  bool operator==(const Policy&) const = default;
};

// The built-in policy: NVIDIA display and 3D controllers, named by model.
Policy DefaultPolicy();

}  // namespace vfio_agent
