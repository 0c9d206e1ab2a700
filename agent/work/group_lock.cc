#include "agent/work/group_lock.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "agent/files.h"
#include "iommu/plan/job_key.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

constexpr std::string_view kPrefix = "group-";

std::string PathOf(const std::string& state_dir, int group) {
  return absl::StrFormat("%s/locks/%s%d", state_dir, kPrefix, group);
}

// Of the open file description (F_OFD_*), which children inherit; and it can be asked about.
struct flock Whole() {
  return {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 0, .l_pid = 0};
}

}  // namespace

absl::StatusOr<Fd> LockGroup(const std::string& state_dir, int group) {
  RETURN_IF_ERROR(MakeDirectories(state_dir + "/locks"));
  const std::string path = PathOf(state_dir, group);
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) return ErrnoStatus(absl::StrFormat("open %s", path));
  struct flock lock = Whole();
  if (::fcntl(fd.get(), F_OFD_SETLK, &lock) == 0) {
    // Only for whoever asks since when.
    [[maybe_unused]] const int touched = ::futimens(fd.get(), nullptr);
    return fd;
  }
  if (errno != EAGAIN && errno != EACCES) return ErrnoStatus(absl::StrFormat("lock %s", path));
  return absl::UnavailableError(
      absl::StrFormat("another vfio-agent process is still at work on %s", SpellJobKey(group)));
}

absl::Time GroupLocked(const std::string& state_dir, int group) {
  struct stat info = {};
  if (::stat(PathOf(state_dir, group).c_str(), &info) != 0) return absl::InfinitePast();
  return absl::TimeFromTimespec(info.st_mtim);
}

bool IsGroupLocked(const std::string& state_dir, int group) {
  const Fd fd(::open(PathOf(state_dir, group).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  struct flock lock = Whole();
  return fd.valid() && ::fcntl(fd.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

std::set<int> LockedGroups(const std::string& state_dir) {
  std::set<int> locked;
  std::error_code error;  // no directory: nobody has ever locked a group
  std::filesystem::directory_iterator entry(state_dir + "/locks", error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename();
    int group = 0;
    if (!name.starts_with(kPrefix) || !absl::SimpleAtoi(name.substr(kPrefix.size()), &group)) {
      continue;
    }
    if (IsGroupLocked(state_dir, group)) locked.insert(group);
  }
  return locked;
}

}  // namespace vfio_agent
