// StorageUse: mounts, swap and stacked block devices on what a PCI function carries.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sysfs/device/device_walk.h"
#include "sysfs/use/use.h"

namespace vfio_agent {

// One line of mountinfo, as far as it matters here.
struct Mount {
  std::string number;  // "259:2"; file systems of several devices (btrfs) have a made-up one
  std::string root;    // what of the file system is mounted: "/", or a node's name for one file
  std::string point;
  std::string type;
  std::string source;  // "/dev/nvme0n1p2"
  bool operator==(const Mount&) const = default;
};

struct HostStorage {
  bool mounts_known = false;  // false where mounts or swap of the host cannot be read
  std::vector<Mount> mounts;
  std::set<std::string> swaps;     // "/dev/dm-1"
  std::set<std::string> btrfs;     // names of the devices of mounted btrfs: "sdb1"
  std::vector<std::string> pools;  // imported ZFS pools
  bool operator==(const HostStorage&) const = default;
};

// proc/<pid>/mountinfo and proc/swaps; lines of another shape are left out.
std::vector<Mount> ParseMounts(std::string_view mountinfo);
std::set<std::string> ParseSwaps(std::string_view swaps);

HostStorage ReadHostStorage(const Tree& tree);

// Follows what is stacked on each disk and partition (dm, md, bcache) up to what is mounted.
std::vector<Use> StorageUses(const Tree& tree, const Below& below, const HostStorage& storage);

}  // namespace vfio_agent
