// DriverReader: reads what vendors' drivers answer themselves, reads that need never return.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "sysfs/device/driver_files.h"

namespace vfio_agent {

// NVIDIA's driver answers for its types of vGPUs under locks that it also has while a guest starts,
// and for ever where the card hangs. So a child reads, one for all files. Where a card does not
// answer for a moment another child goes on with the next ones, and the first has until the end of
// the patience. A card that did not answer is asked again ever later, and not while a child is
// still inside its driver. Without files there is no child. One thread.
class DriverReader {
 public:
  DriverTexts Read(const std::string& root, std::vector<DriverFile> files);

  // False where a card did not answer the last time, so that asking again may help.
  bool answered() const { return answered_; }

 private:
  struct Silent {
    std::string file;
    absl::Duration wait;
    absl::Time again;
  };
  struct Child {
    pid_t pid = -1;
    PciAddress card;
  };

  void Reap();
  bool IsToBeAsked(const PciAddress& card) const;
  void NoteSilent(const PciAddress& card, const std::string& file);
  void AddSilences(const std::vector<DriverFile>& files, DriverTexts& texts);

  bool answered_ = true;
  std::map<PciAddress, Silent> silent_;
  std::vector<Child> left_;  // killed, and not gone when they were looked at last
};

// For any thread, one at a time; it has its own memory of who is silent.
AskDrivers AskWithDeadline(const std::string& root);

}  // namespace vfio_agent
