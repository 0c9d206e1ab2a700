#include "deviceplugin/grpc/listener.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "sysfs/clock.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

constexpr absl::Duration kTellAgain = absl::Minutes(1);
// How long nobody is accepted after the process ran out of descriptors or memory: who waits is
// still in the queue, and would only be tried again at once.
constexpr int kPauseMs = 100;
constexpr int kBacklog = 128;

// A hidden name beside `path`, as long as it: fits wherever `path` does, and the kubelet's plugin
// watcher does not look at it.
std::string HiddenName(std::string path) {
  path.at(path.rfind('/') + 1) = '.';
  return path;
}

absl::Status Bind(const Fd& socket, const std::string& path, const std::string& what) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return ErrnoStatus(ENAMETOOLONG, what);
  std::ranges::copy(path, address.sun_path);
  // bind() gives the file the socket's mode: no other way reaches it without a moment in which
  // others could connect, and the umask is the whole process's.
  if (::fchmod(socket.get(), 0600) != 0) return ErrnoStatus(what);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return ErrnoStatus(what);
  }
  return absl::OkStatus();
}

std::optional<SocketFile> LookAt(const std::string& path) {
  struct stat info = {};
  if (::lstat(path.c_str(), &info) != 0) return std::nullopt;
  return SocketFile{.device = info.st_dev, .inode = info.st_ino};
}

}  // namespace

std::string Describe(const RefusedPeer& peer) {
  const std::string others =
      peer.untold > 0 ? absl::StrFormat(" (and %d more before it)", peer.untold) : "";
  return absl::StrFormat(
      "pid %d of user %d was turned away%s: only the kubelet, as root, may speak "
      "here",
      peer.pid, peer.uid, others);
}

bool MaySpeak(uid_t peer, uid_t own) { return peer == 0 || peer == own; }

Listener::Listener(std::string path, Callbacks callbacks)
    : path_(std::move(path)),
      callbacks_(std::move(callbacks)),
      stop_(::eventfd(0, EFD_CLOEXEC)),
      socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {}

absl::StatusOr<std::unique_ptr<Listener>> Listener::Start(const std::string& path,
                                                          Callbacks callbacks) {
  std::unique_ptr<Listener> started(new Listener(path, std::move(callbacks)));
  RETURN_IF_ERROR(started->Listen());
  return started;
}

absl::Status Listener::Listen() {
  const std::string what = absl::StrFormat("listen on %s", path_);
  if (!stop_.valid() || !socket_.valid()) return ErrnoStatus(what);
  const std::string hidden = HiddenName(path_);
  RETURN_IF_ERROR(Bind(socket_, hidden, what));
  const std::optional<SocketFile> file = LookAt(hidden);
  if (!file || ::listen(socket_.get(), kBacklog) != 0 ||
      ::rename(hidden.c_str(), path_.c_str()) != 0) {
    const absl::Status status = ErrnoStatus(what);
    ::unlink(hidden.c_str());
    return status;
  }
  file_ = *file;
  thread_ = std::thread([this] { Accept(); });
  return absl::OkStatus();
}

Listener::~Listener() {
  if (!thread_.joinable()) return;
  ::eventfd_write(stop_.get(), 1);
  thread_.join();
  if (LookAt(path_) == file_) ::unlink(path_.c_str());
}

void Listener::Accept() {
  for (;;) {
    pollfd ready[] = {{stop_.get(), POLLIN, 0}, {socket_.get(), POLLIN, 0}};
    if (::poll(ready, 2, -1) < 0) continue;  // EINTR
    if (ready[0].revents != 0) return;
    const int peer = ::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (peer >= 0) {
      Receive(peer);
    } else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
      ::poll(ready, 1, kPauseMs);
    }
  }
}

void Listener::Receive(int peer) {
  // Those of the process that called connect(); nobody's where the kernel does not tell.
  ucred credentials = {.pid = 0, .uid = static_cast<uid_t>(-1), .gid = 0};
  socklen_t size = sizeof(credentials);
  ::getsockopt(peer, SOL_SOCKET, SO_PEERCRED, &credentials, &size);
  if (MaySpeak(credentials.uid, ::geteuid())) return callbacks_.accepted(peer);
  const Fd closed(peer);
  TurnAway({.uid = credentials.uid, .pid = credentials.pid});
}

void Listener::TurnAway(RefusedPeer peer) {
  const absl::Time now = MonotonicNow();
  if (now < last_told_ + kTellAgain) {
    ++untold_;
    return;
  }
  last_told_ = now;
  peer.untold = std::exchange(untold_, 0);
  callbacks_.turned_away(peer);
}

}  // namespace vfio_agent
