// Listener: a unix socket on which only root, and whoever we are ourselves, is heard.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "sysfs/fd.h"

namespace vfio_agent {

// Who connected and was turned away.
struct RefusedPeer {
  uid_t uid = 0;
  pid_t pid = 0;
  int untold = 0;  // how many more there were since the last one that was told
};

// "pid 4711 of user 1000 was turned away (and 3 more before it): ...".
std::string Describe(const RefusedPeer& peer);

// True for root and for `own`, our effective user: nothing in the kubelet's protocol tells it from
// anybody else, and a socket's mode only helps until somebody changes it.
bool MaySpeak(uid_t peer, uid_t own);

// A socket's file, by what stays when another one is made at the same path.
struct SocketFile {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const SocketFile&) const = default;
};

class Listener {
 public:
  // Both are called on the listener's own thread.
  struct Callbacks {
    std::function<void(int fd)> accepted;                      // owns the descriptor, non-blocking
    std::function<void(const RefusedPeer& peer)> turned_away;  // at most once a minute
  };

  // Whoever sees the file at `path` can connect: it gets this name only when it listens. Its mode
  // is 0600 from the first moment. The error has the errno (ErrnoOf).
  static absl::StatusOr<std::unique_ptr<Listener>> Start(const std::string& path,
                                                         Callbacks callbacks);
  // Nobody is accepted afterwards. Removes the file unless another one has taken its place.
  ~Listener();

  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

 private:
  Listener(std::string path, Callbacks callbacks);

  absl::Status Listen();
  void Accept();
  void Receive(int peer);
  void TurnAway(RefusedPeer peer);

  const std::string path_;
  const Callbacks callbacks_;
  Fd stop_;  // readable when the thread is to end
  Fd socket_;
  SocketFile file_;
  int untold_ = 0;
  absl::Time last_told_ = absl::InfinitePast();
  std::thread thread_;  // sleeps while nobody connects
};

}  // namespace vfio_agent
