#include "test/sim/inodes.h"

namespace vfio_agent::sim {

std::optional<std::string> Inodes::PathOf(uint64_t number) {
  if (number == kRoot) return "";
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = inodes_.find(number);
  if (found == inodes_.end()) return std::nullopt;
  return found->second.path;
}

uint64_t Inodes::LookUp(const std::string& path, bool fresh) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const auto known = numbers_.find(path); !fresh && known != numbers_.end()) {
    ++inodes_[known->second].lookups;
    return known->second;
  }
  const uint64_t number = next_++;
  inodes_[number] = {.path = path, .lookups = 1, .fresh = fresh};
  if (!fresh) numbers_[path] = number;
  return number;
}

void Inodes::Forget(uint64_t number, uint64_t times) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = inodes_.find(number);
  if (found == inodes_.end()) return;
  Inode& inode = found->second;
  inode.lookups -= std::min(times, inode.lookups);
  if (inode.lookups > 0) return;
  if (!inode.fresh) numbers_.erase(inode.path);
  inodes_.erase(found);
}

}  // namespace vfio_agent::sim
