// OpenFiles: what FUSE has open, by number.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace vfio_agent::sim {

// Like a sysfs attribute it is shown once, at the first read, and again when read from offset 0.
// Two threads may read one descriptor at once, hence the lock.
struct OpenFile {
  explicit OpenFile(std::string opened) : path(std::move(opened)) {}
  const std::string path;
  std::mutex mutex;
  std::string text;
};

class OpenFiles {
 public:
  uint64_t Open(const std::string& path) {
    const std::lock_guard<std::mutex> lock(mutex_);
    files_[++last_] = std::make_shared<OpenFile>(path);
    return last_;
  }
  // Shared, because the owner may close the file while the reply of a read is on its way.
  std::shared_ptr<OpenFile> Find(uint64_t number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return files_.at(number);
  }
  void Close(uint64_t number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    files_.erase(number);
  }

 private:
  std::mutex mutex_;
  uint64_t last_ = 0;
  std::map<uint64_t, std::shared_ptr<OpenFile>> files_;
};

}  // namespace vfio_agent::sim
