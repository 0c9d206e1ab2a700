#include "agent/snapshot/write_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_format.h"
#include "sysfs/fd.h"
#include "sysfs/status.h"

namespace vfio_agent {
namespace {

absl::Status Fill(const Fd& file, const std::string& name, const std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t n = ::write(file.get(), bytes.data() + at, bytes.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(absl::StrFormat("write %s", name));
    at += static_cast<size_t>(n);
  }
  if (::fsync(file.get()) != 0) return ErrnoStatus(absl::StrFormat("write %s", name));
  return absl::OkStatus();
}

absl::Status Rename(const std::string& from, const std::string& to, bool replace) {
  const unsigned flags = replace ? 0 : RENAME_NOREPLACE;
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), flags) == 0) {
    return absl::OkStatus();
  }
  if (errno == EEXIST) return absl::AlreadyExistsError(absl::StrFormat("%s is there already", to));
  // File systems that know no such renaming can link, which replaces nothing either.
  if (errno != EINVAL || ::link(from.c_str(), to.c_str()) != 0) {
    return ErrnoStatus(absl::StrFormat("rename to %s", to));
  }
  ::unlink(from.c_str());
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteNewFile(const std::string& path, const std::string& bytes, bool replace) {
  std::string fresh = path + ".XXXXXX";
  const Fd file(::mkostemp(fresh.data(), O_CLOEXEC));
  if (!file.valid()) return ErrnoStatus(absl::StrFormat("create %s", path));
  absl::Status status = Fill(file, path, bytes);
  if (status.ok()) status = Rename(fresh, path, replace);
  if (!status.ok()) ::unlink(fresh.c_str());
  return status;
}

}  // namespace vfio_agent
