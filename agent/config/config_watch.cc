#include "agent/config/config_watch.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <string_view>

#include "agent/config/config.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

// How long a text must have been the same.
constexpr absl::Duration kPause = absl::Milliseconds(200);
constexpr uint32_t kEvents = IN_CLOSE_WRITE | IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE |
                             IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
constexpr uint32_t kDirectoryGone = IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT;

// The kubelet's own names in a ConfigMap's directory all begin so.
bool IsKubelets(std::string_view name) { return name.starts_with(".."); }

bool IsReadOnce(const std::string& file) {
  std::error_code error;
  const auto type = std::filesystem::status(file, error).type();
  return type == std::filesystem::file_type::fifo || type == std::filesystem::file_type::socket ||
         type == std::filesystem::file_type::character;
}

}  // namespace

ConfigWatch::ConfigWatch(std::string file, std::optional<size_t> in_force)
    : file_(std::move(file)),
      once_(IsReadOnce(file_)),
      inotify_(once_ ? -1 : ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)),
      tried_{.text = in_force, .error = in_force ? 0 : ENOENT},
      seen_(tried_) {
  Watch();
}

void ConfigWatch::Watch() {
  if (!inotify_.valid() || watched_ >= 0) return;
  const std::string dir = std::filesystem::path(file_).parent_path().string();
  watched_ = ::inotify_add_watch(inotify_.get(), dir.empty() ? "." : dir.c_str(), kEvents);
}

ConfigWatch::Seen ConfigWatch::Read() const {
  const absl::StatusOr<std::string> text = ReadConfigText(file_);
  if (!text.ok()) return {.error = ErrnoOf(text.status())};
  return {.text = FingerprintOf(*text),
          .empty = text->find_first_not_of(" \t\r\n") == std::string::npos};
}

void ConfigWatch::Drain(absl::Time now) {
  const std::string name = std::filesystem::path(file_).filename().string();
  bool ours = false;
  alignas(inotify_event) std::array<char, 4096> buffer = {};
  for (ssize_t n = 0; (n = ::read(inotify_.get(), buffer.data(), buffer.size())) > 0;) {
    for (ssize_t at = 0; at < n;) {
      const auto* const event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
      at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
      const std::string_view of = event->len > 0 ? event->name : "";
      ours = ours || of == name || IsKubelets(of) || (event->mask & IN_Q_OVERFLOW) != 0;
      if ((event->mask & kDirectoryGone) == 0 || event->wd != watched_) continue;
      ::inotify_rm_watch(inotify_.get(), watched_);
      watched_ = -1;
      ours = true;
    }
  }
  if (ours) Look(now);
}

void ConfigWatch::Look(absl::Time now) {
  if (once_) return;
  Watch();
  Note(Read(), now);
}

// Only another text begins the wait anew: what else happens in the directory cannot put it off.
void ConfigWatch::Note(const Seen& seen, absl::Time now) {
  if (seen == tried_) {
    due_ = absl::InfiniteFuture();
  } else if (seen != seen_ || due_ == absl::InfiniteFuture()) {
    due_ = now + kPause;
  }
  seen_ = seen;
}

ConfigWatch::Found ConfigWatch::Check(absl::Time now) {
  if (now < due_) return Found::kNothing;
  const Seen before = seen_;
  due_ = absl::InfiniteFuture();
  Note(Read(), now);
  if (seen_ == tried_ || seen_ != before) return Found::kNothing;
  due_ = absl::InfiniteFuture();
  if (seen_.text) return seen_.empty ? Found::kEmpty : Found::kNew;
  return seen_.error == ENOENT ? Found::kGone : Found::kUnreadable;
}

void ConfigWatch::Tried() {
  if (once_) return;
  tried_ = seen_ = Read();
  due_ = absl::InfiniteFuture();
}

}  // namespace vfio_agent
