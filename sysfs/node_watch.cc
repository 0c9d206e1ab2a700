#include "sysfs/node_watch.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>

#include "absl/strings/str_format.h"
#include "sysfs/paths.h"
#include "sysfs/tree.h"

namespace vfio_agent {
namespace {

constexpr char kDev[] = "dev";
constexpr char kCdevs[] = "dev/vfio/devices";
constexpr uint32_t kComeAndGo = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO;

}  // namespace

NodeWatch::NodeWatch(const Tree& tree)
    : tree_(tree), inotify_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
  Arm();
}

// By a descriptor, so that no link leads out of the root.
int NodeWatch::Add(const char* dir, uint32_t events) const {
  const auto opened = tree_.OpenAt(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (!opened.ok()) return -1;
  const std::string path = absl::StrFormat("/proc/self/fd/%d", opened->get());
  return ::inotify_add_watch(inotify_.get(), path.c_str(), events | IN_DELETE_SELF | IN_ONLYDIR);
}

void NodeWatch::Arm() {
  if (nodes_ < 0) nodes_ = Add(kVfioNodesDir, kComeAndGo);
  if (nodes_ >= 0 && cdevs_ < 0) cdevs_ = Add(kCdevs, kComeAndGo);
  // Much comes and goes there that is not ours.
  if (nodes_ >= 0 && above_ >= 0) {
    ::inotify_rm_watch(inotify_.get(), above_);
    above_ = -1;
  }
  if (nodes_ < 0 && above_ < 0) above_ = Add(kDev, IN_CREATE | IN_MOVED_TO);
}

void NodeWatch::Disarm() {
  for (int* const watch : {&above_, &nodes_, &cdevs_}) {
    if (*watch >= 0) ::inotify_rm_watch(inotify_.get(), *watch);
    *watch = -1;
  }
}

bool NodeWatch::Drain() {
  alignas(inotify_event) std::array<char, 4096> events;
  bool concerned = false;
  bool lost = false;
  for (ssize_t n = 0; (n = ::read(inotify_.get(), events.data(), events.size())) > 0;) {
    const inotify_event* event = nullptr;
    for (const char* at = events.data(); at < events.data() + n;
         at += sizeof(*event) + event->len) {
      event = reinterpret_cast<const inotify_event*>(at);
      lost = lost || (event->mask & IN_Q_OVERFLOW) != 0;
      const bool ended = (event->mask & IN_IGNORED) != 0;
      if (ended && event->wd == nodes_) nodes_ = -1;
      if (ended && event->wd == cdevs_) cdevs_ = -1;
      const bool named = event->len > 0 && std::strcmp(event->name, "vfio") == 0;
      concerned = concerned || event->wd != above_ || named;
    }
  }
  if (lost) Disarm();  // one of the lost events may have been the end of a watch
  Arm();
  return concerned || lost;
}

}  // namespace vfio_agent
