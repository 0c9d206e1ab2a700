// KubeletWatch: what happens to the kubelet's device-plugin directory and the sockets in it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "sysfs/fd.h"

namespace vfio_agent {

// inotify says when to look; what is true is read with stat each time, since events can be lost
// and a directory that is a container's mount goes stale without any.
class KubeletWatch {
 public:
  // `dir` need not exist yet.
  explicit KubeletWatch(std::string dir);

  struct Look {
    bool kubelet_present = false;
    bool kubelet_new = false;         // the first one seen, or another one than the last time
    bool kubelet_restarted = false;   // kubelet_new, and there was one before
    bool directory_replaced = false;  // the directory of the last look is no longer at the path
  };
  // Compares with the last look.
  Look LookAgain();

  // Readable when LookAgain() may have something new; -1 where the kernel gives no inotify.
  int fd() const { return inotify_.get(); }
  // Reads the descriptor empty.
  void Drain();
  // False while nothing would make fd() readable: look from time to time then.
  bool armed() const { return watch_ >= 0; }

  const std::string& dir() const { return dir_; }
  const std::string& kubelet_socket() const { return kubelet_socket_; }

 private:
  struct Identity {
    dev_t device = 0;
    ino_t inode = 0;
    int64_t changed_ns = 0;  // inode numbers are given out again
    bool operator==(const Identity&) const = default;
  };

  bool LookAtDirectory();
  void Arm();

  std::string dir_;
  std::string kubelet_socket_;
  Fd inotify_;
  int watch_ = -1;
  std::optional<Identity> directory_;
  std::optional<Identity> kubelet_;  // the last one seen, also while there is none
};

}  // namespace vfio_agent
