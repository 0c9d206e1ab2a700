#include "deviceplugin/kubelet/kubelet_watch.h"

#include <sys/inotify.h>
#include <sys/stat.h>

#include <array>
#include <utility>

namespace vfio_agent {

KubeletWatch::KubeletWatch(std::string dir)
    : dir_(std::move(dir)),
      kubelet_socket_(dir_ + "/kubelet.sock"),
      inotify_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {}

KubeletWatch::Look KubeletWatch::LookAgain() {
  Look look{.directory_replaced = LookAtDirectory()};
  struct stat info = {};
  if (::stat(kubelet_socket_.c_str(), &info) != 0 || !S_ISSOCK(info.st_mode)) return look;
  const Identity seen{
      .device = info.st_dev,
      .inode = info.st_ino,
      .changed_ns = int64_t{info.st_ctim.tv_sec} * 1'000'000'000 + info.st_ctim.tv_nsec};
  look.kubelet_present = true;
  look.kubelet_new = kubelet_ != seen;
  look.kubelet_restarted = look.kubelet_new && kubelet_.has_value();
  kubelet_ = seen;
  return look;
}

void KubeletWatch::Drain() {
  std::array<char, 4096> events;
  while (::read(inotify_.get(), events.data(), events.size()) > 0) {
  }
}

// A directory that was deleted below a bind mount is still at the path, with no links left.
bool KubeletWatch::LookAtDirectory() {
  struct stat info = {};
  std::optional<Identity> now;
  if (::stat(dir_.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_nlink > 0) {
    now = Identity{.device = info.st_dev, .inode = info.st_ino};
  }
  if (now == directory_) {
    if (now && !armed()) Arm();
    return false;
  }
  const bool replaced = directory_.has_value();
  directory_ = now;
  if (watch_ >= 0) ::inotify_rm_watch(inotify_.get(), watch_);
  watch_ = -1;
  if (now) Arm();
  return replaced;
}

void KubeletWatch::Arm() {
  watch_ = ::inotify_add_watch(inotify_.get(), dir_.c_str(),
                               IN_ONLYDIR | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
                                   IN_DELETE_SELF | IN_MOVE_SELF);
}

}  // namespace vfio_agent
