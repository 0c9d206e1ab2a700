#include "sysfs/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstddef>
#include <cstdint>

#include "sysfs/status.h"

namespace vfio_agent {
namespace {

constexpr int kOpenAttempts = 10'000;
constexpr size_t kReplayLimit = size_t{16} * 1024 * 1024;

// Reads to the end, at most `limit` bytes; `name` is for messages.
absl::StatusOr<std::string> ReadAll(int fd, std::string_view name, size_t limit) {
  std::string text;
  std::array<char, 4096 + 1> chunk;
  while (text.size() <= limit) {
    const ssize_t n = ::read(fd, chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(absl::StrFormat("read %s", name));
    if (n == 0) break;
    text.append(chunk.data(), static_cast<size_t>(n));
    // Attributes and regular files give a short read only at their end: spare the second call.
    if (static_cast<size_t>(n) < chunk.size()) break;
  }
  if (text.size() > limit) return absl::OutOfRangeError(absl::StrFormat("too long: %s", name));
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

absl::StatusOr<std::string> LinkTarget(int dir, const char* name) {
  std::array<char, PATH_MAX> target;
  const ssize_t n = ::readlinkat(dir, name, target.data(), target.size());
  if (n < 0) return ErrnoStatus(absl::StrFormat("readlink %s", name));
  return std::string(target.data(), static_cast<size_t>(n));
}

std::string LastComponent(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

// The head of one record of getdents64(2), the kernel's layout; the name follows, with a NUL.
// (readdir(3) takes four more system calls a directory.)
struct RawEntry {
  uint64_t inode;
  int64_t offset;
  uint16_t record_bytes;
  uint8_t type;
};
constexpr size_t kNameAt = offsetof(RawEntry, type) + 1;

void AppendEntries(const char* buffer, size_t size, std::vector<Entry>& entries) {
  for (size_t at = 0; at < size;) {
    // The kernel aligns each record for its fields.
    const auto* const head = reinterpret_cast<const RawEntry*>(buffer + at);
    const char* const name = buffer + at + kNameAt;
    at += head->record_bytes;
    if (name[0] != '.') entries.push_back({.name = name, .is_link = head->type == DT_LNK});
  }
}

absl::StatusOr<std::vector<Entry>> ListFd(int fd, std::string_view name) {
  alignas(RawEntry) std::array<char, size_t{16} * 1024> buffer;
  std::vector<Entry> entries;
  for (;;) {
    const ssize_t n = ::syscall(SYS_getdents64, fd, buffer.data(), buffer.size());
    if (n < 0) return ErrnoStatus(absl::StrFormat("list %s", name));
    if (n == 0) return entries;
    AppendEntries(buffer.data(), static_cast<size_t>(n), entries);
  }
}

}  // namespace

absl::StatusOr<Tree> Tree::OpenRecorded(const std::string& root, Recorder recorder,
                                        const Replay& known) {
  Fd dir(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!dir.valid()) return ErrnoStatus(absl::StrFormat("open root %s", root));
  Tree tree(root, std::move(dir));
  ASSIGN_OR_RETURN(Replay replay, tree.ReadReplay());
  replay.failures.insert(known.failures.begin(), known.failures.end());
  if (recorder.end || replay != Replay()) {
    tree.watch_ = std::make_shared<const Watch>(std::move(replay), std::move(recorder));
  }
  return tree;
}

absl::StatusOr<Tree> Tree::Open(const std::string& root) { return OpenRecorded(root, {}, {}); }

absl::StatusOr<Replay> Tree::ReadReplay() const {
  if (is_host()) return Replay();
  const absl::StatusOr<Fd> file = OpenUnwatched(kReplayFile, O_RDONLY | O_NOCTTY | O_NONBLOCK);
  if (absl::IsNotFound(file.status())) return Replay();
  if (!file.ok()) return file.status();
  ASSIGN_OR_RETURN(const std::string text, ReadAll(file->get(), kReplayFile, kReplayLimit));
  return ParseReplay(text);
}

absl::StatusOr<Fd> Tree::OpenAt(std::string_view path, int flags) const {
  return Watched(watch(), ReadKind::kOpen, path, [&] { return OpenUnwatched(path, flags); });
}

absl::StatusOr<Fd> Tree::OpenUnwatched(std::string_view path, int flags) const {
  const std::string name(path);
  if (name.empty() || name.front() == '/') {
    return absl::InvalidArgumentError(absl::StrFormat("not a path below the root: '%s'", name));
  }
  open_how how = {};
  how.flags = static_cast<uint64_t>(flags) | O_CLOEXEC;
  // Nothing leads out of "/", and a plain look-up is quicker.
  how.resolve = RESOLVE_NO_MAGICLINKS | (is_host() ? 0 : RESOLVE_IN_ROOT);
  for (int attempt = 0;; ++attempt) {
    // glibc 2.36 has no wrapper for openat2(2), Linux 5.6.
    Fd fd(static_cast<int>(::syscall(SYS_openat2, dir_.get(), name.c_str(), &how, sizeof how)));
    if (fd.valid()) return fd;
    // EAGAIN: a rename somewhere on the machine came between two steps of a path with "..", so
    // the kernel could not prove that it stays inside (openat2(2), RESOLVE_IN_ROOT).
    if (errno != EINTR && (errno != EAGAIN || attempt >= kOpenAttempts)) {
      return ErrnoStatus(absl::StrFormat("open %s", name));
    }
  }
}

absl::StatusOr<std::string> Tree::ReadText(std::string_view path, size_t limit) const {
  return Watched(watch(), ReadKind::kText, path, [&]() -> absl::StatusOr<std::string> {
    ASSIGN_OR_RETURN(const Fd fd, OpenUnwatched(path, O_RDONLY | O_NOCTTY | O_NONBLOCK));
    return ReadAll(fd.get(), path, limit);
  });
}

absl::StatusOr<std::string> Tree::ReadLink(std::string_view path) const {
  return Watched(watch(), ReadKind::kLink, path, [&] { return TargetOf(path); });
}

absl::StatusOr<std::string> Tree::TargetOf(std::string_view path) const {
  const std::string name(path);
  const size_t slash = name.rfind('/');
  if (slash == std::string::npos) return LinkTarget(dir_.get(), name.c_str());
  ASSIGN_OR_RETURN(const Fd dir, OpenUnwatched(name.substr(0, slash), O_PATH | O_DIRECTORY));
  absl::StatusOr<std::string> target = LinkTarget(dir.get(), name.c_str() + slash + 1);
  if (!target.ok()) return Annotate(target.status(), name);
  return target;
}

absl::StatusOr<std::string> Tree::ReadLinkName(std::string_view path) const {
  ASSIGN_OR_RETURN(const std::string target, ReadLink(path));
  return LastComponent(target);
}

absl::StatusOr<std::vector<std::string>> Tree::List(std::string_view path) const {
  ASSIGN_OR_RETURN(
      const std::vector<Entry> entries,
      Watched(watch(), ReadKind::kList, path, [&]() -> absl::StatusOr<std::vector<Entry>> {
        ASSIGN_OR_RETURN(const Fd fd, OpenUnwatched(path, O_RDONLY | O_DIRECTORY));
        return ListFd(fd.get(), path);
      }));
  std::vector<std::string> names;
  names.reserve(entries.size());
  for (const Entry& entry : entries) names.push_back(entry.name);
  std::ranges::sort(names);
  return names;
}

bool Tree::Exists(std::string_view path) const { return OpenAt(path, O_PATH).ok(); }

absl::StatusOr<TreeDir> TreeDir::Open(const Tree& tree, std::string_view path) {
  ASSIGN_OR_RETURN(Fd fd, tree.OpenAt(path, O_RDONLY | O_DIRECTORY));
  TreeDir dir(std::move(fd));
  if (tree.watch() != nullptr) {
    dir.watch_ = tree.watch_;
    dir.path_ = path;
  }
  return dir;
}

std::string TreeDir::PathOf(const char* name) const {
  return watch_ == nullptr ? std::string() : path_ + "/" + name;
}

absl::StatusOr<std::string> TreeDir::ReadText(const char* name) const {
  return Watched(watch_.get(), ReadKind::kText, PathOf(name), [&]() -> absl::StatusOr<std::string> {
    const Fd fd(
        ::openat(dir_.get(), name, O_RDONLY | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
    if (!fd.valid()) return ErrnoStatus(absl::StrFormat("open %s", name));
    return ReadAll(fd.get(), name, 4096);
  });
}

absl::StatusOr<std::string> TreeDir::RealPath() const {
  return LinkTarget(AT_FDCWD, absl::StrFormat("/proc/self/fd/%d", dir_.get()).c_str());
}

absl::StatusOr<std::string> TreeDir::ReadLinkName(const char* name) const {
  ASSIGN_OR_RETURN(const std::string target, Watched(watch_.get(), ReadKind::kLink, PathOf(name),
                                                     [&] { return LinkTarget(dir_.get(), name); }));
  return LastComponent(target);
}

absl::StatusOr<std::vector<Entry>> TreeDir::List() const {
  return Watched(watch_.get(), ReadKind::kList, path_,
                 [&] { return ListFd(dir_.get(), "device"); });
}

}  // namespace vfio_agent
