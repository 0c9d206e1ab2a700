#include "agent/daemon/daemon_lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "agent/files.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

pid_t ReadPid(int fd) {
  std::array<char, 32> text = {};
  const ssize_t n = ::pread(fd, text.data(), text.size() - 1, 0);
  int pid = 0;
  return n > 0 && absl::SimpleAtoi(text.data(), &pid) ? pid : 0;
}

// Of the open file description (F_OFD_*): it can be asked about without being taken.
struct flock Whole() {
  return {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 0, .l_pid = 0};
}

std::string PathIn(const std::string& state_dir) { return state_dir + "/agent.lock"; }

}  // namespace

std::optional<pid_t> DaemonLock::Running(const std::string& state_dir) {
  const Fd fd(::open(PathIn(state_dir).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct flock lock = Whole();
  if (!fd.valid() || ::fcntl(fd.get(), F_OFD_GETLK, &lock) != 0) return std::nullopt;
  if (lock.l_type == F_UNLCK) return std::nullopt;
  return ReadPid(fd.get());
}

absl::Status DaemonLock::TryTake() {
  RETURN_IF_ERROR(MakeDirectories(state_dir_));
  const std::string path = PathIn(state_dir_);
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) return ErrnoStatus(absl::StrFormat("open %s", path));
  struct flock lock = Whole();
  if (::fcntl(fd.get(), F_OFD_SETLK, &lock) != 0) {
    if (errno != EAGAIN && errno != EACCES) return ErrnoStatus(absl::StrFormat("lock %s", path));
    holder_ = ReadPid(fd.get());
    return absl::UnavailableError(absl::StrFormat("%s is taken by process %d", path, holder_));
  }
  lock_ = std::move(fd);
  // Only for people and for the one that waits: the lock itself is the kernel's.
  const std::string pid = absl::StrFormat("%d\n", ::getpid());
  if (::ftruncate(lock_.get(), 0) != 0 ||
      ::pwrite(lock_.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return ErrnoStatus(absl::StrFormat("write %s", path));
  }
  return absl::OkStatus();
}

}  // namespace vfio_agent
