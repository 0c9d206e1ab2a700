#include "agent/daemon_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>

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

}  // namespace

absl::Status DaemonLock::TryTake() {
  RETURN_IF_ERROR(MakeDirectories(state_dir_));
  const std::string path = state_dir_ + "/agent.lock";
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) return ErrnoStatus(absl::StrFormat("open %s", path));
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return ErrnoStatus(absl::StrFormat("lock %s", path));
    holder_ = ReadPid(fd.get());
    return absl::UnavailableError(absl::StrFormat("%s is taken by process %d", path, holder_));
  }
  // Only for people and for the one that waits: the lock itself is the kernel's.
  const std::string pid = absl::StrFormat("%d\n", ::getpid());
  if (::ftruncate(fd.get(), 0) != 0 ||
      ::pwrite(fd.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return ErrnoStatus(absl::StrFormat("write %s", path));
  }
  lock_ = std::move(fd);
  return absl::OkStatus();
}

}  // namespace vfio_agent
