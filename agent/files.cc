#include "agent/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "absl/strings/str_format.h"
#include "sysfs/fd.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

absl::Status WriteSynced(const std::string& path, const std::string& text, mode_t mode) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode));
  if (!fd.valid()) return ErrnoStatus(absl::StrFormat("create %s", path));
  const ssize_t n = ::write(fd.get(), text.data(), text.size());
  if (n < 0 || ::fsync(fd.get()) != 0) return ErrnoStatus(absl::StrFormat("write %s", path));
  if (static_cast<size_t>(n) == text.size()) return absl::OkStatus();
  return ErrnoStatus(ENOSPC, absl::StrFormat("write %s", path));
}

}  // namespace

absl::Status MakeDirectories(const std::string& path, mode_t mode) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    if (::mkdir(part.c_str(), mode) != 0 && errno != EEXIST) {
      return ErrnoStatus(absl::StrFormat("mkdir %s", part));
    }
    if (slash == std::string::npos) return absl::OkStatus();
  }
}

absl::StatusOr<std::string> ReadSmallFile(const std::string& path, size_t limit) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid()) return ErrnoStatus(absl::StrFormat("open %s", path));
  // Piece by piece: `limit` may be a thousand times what there is.
  std::string text;
  std::array<char, size_t{16} * 1024> piece;
  while (text.size() < limit) {
    const ssize_t n = ::read(fd.get(), piece.data(), std::min(piece.size(), limit - text.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(absl::StrFormat("read %s", path));
    if (n == 0) break;
    text.append(piece.data(), static_cast<size_t>(n));
  }
  return text;
}

absl::Status ReplaceFile(const std::string& path, const std::string& text, mode_t mode,
                         const std::string& fresh_name) {
  const std::string dir = path.substr(0, path.rfind('/'));
  const std::string fresh =
      fresh_name.empty() ? path + ".new" : absl::StrFormat("%s/%s", dir, fresh_name);
  absl::Status status = WriteSynced(fresh, text, mode);
  if (status.ok() && ::rename(fresh.c_str(), path.c_str()) != 0) {
    status = ErrnoStatus(absl::StrFormat("rename %s", fresh));
  }
  if (status.ok()) return SyncDirectory(dir);
  ::unlink(fresh.c_str());  // half a file helps nobody, and a full disk wants its blocks back
  return status;
}

absl::Status RemoveRegularFile(const std::string& path) {
  struct stat facts = {};
  if (::lstat(path.c_str(), &facts) != 0) {
    const bool none = errno == ENOENT || errno == ENOTDIR;
    return none ? absl::OkStatus() : ErrnoStatus(absl::StrFormat("stat %s", path));
  }
  if (!S_ISREG(facts.st_mode)) return absl::OkStatus();
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  return ErrnoStatus(absl::StrFormat("remove %s", path));
}

absl::Status SyncDirectory(const std::string& path) {
  const Fd dir(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!dir.valid() || ::fsync(dir.get()) != 0) return ErrnoStatus(absl::StrFormat("sync %s", path));
  return absl::OkStatus();
}

}  // namespace vfio_agent
