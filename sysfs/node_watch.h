// NodeWatch: a descriptor that is readable when a device node of VFIO comes or goes.
#pragma once

#include <cstdint>

#include "sysfs/fd.h"

namespace vfio_agent {

class Tree;

// Watches directories and not files: a watch on a file ends with the file, and says nothing when
// another one takes its place. dev/vfio and dev/vfio/devices; where they are not there yet, dev, in
// which the kernel makes them. A wake-up and nothing else, like Uevents. One thread.
class NodeWatch {
 public:
  // `tree` outlives the object. fd() is -1 where the kernel gives no inotify.
  explicit NodeWatch(const Tree& tree);

  int fd() const { return inotify_.get(); }

  // Takes all pending events off the queue and watches what has appeared. True where one of them
  // may concern VFIO.
  bool Drain();

 private:
  void Arm();
  void Disarm();
  int Add(const char* dir, uint32_t events) const;

  const Tree& tree_;
  Fd inotify_;
  int above_ = -1;  // watches: of dev,
  int nodes_ = -1;  // of dev/vfio
  int cdevs_ = -1;  // and of dev/vfio/devices
};

}  // namespace vfio_agent
