// Inodes: the numbers under which FUSE speaks of paths.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace vfio_agent::sim {

class Inodes {
 public:
  static constexpr uint64_t kRoot = 1;

  // The path of `number`; nullopt for one that was forgotten.
  std::optional<std::string> PathOf(uint64_t number);

  // A number for `path`, held until it is forgotten as often as it was looked up.
  //
  // `fresh`: a new number each time. The real kernel serialises writes to one inode, with a lock
  // that no signal interrupts; sysfs does not. Files that act when written to therefore are a
  // new inode for each opener, so that one blocked unbind does not block all of the driver's.
  uint64_t LookUp(const std::string& path, bool fresh);

  void Forget(uint64_t number, uint64_t times);

 private:
  struct Inode {
    std::string path;
    uint64_t lookups = 0;
    bool fresh = false;
  };
  std::mutex mutex_;
  uint64_t next_ = kRoot + 1;
  std::map<uint64_t, Inode> inodes_;
  std::map<std::string, uint64_t> numbers_;  // of those that are not fresh
};

}  // namespace vfio_agent::sim
