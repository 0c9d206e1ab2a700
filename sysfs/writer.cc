#include "sysfs/writer.h"

#include <fcntl.h>
#include <unistd.h>

#include "sysfs/host/module_loader.h"
#include "sysfs/status.h"
#include "sysfs/tree.h"

namespace vfio_agent {

absl::Status TreeWriter::Write(std::string_view path, std::string_view text) {
  ASSIGN_OR_RETURN(const Fd fd, tree_.OpenAt(path, O_WRONLY | O_NOCTTY));
  const ssize_t n = ::write(fd.get(), text.data(), text.size());
  if (n < 0) return ErrnoStatus(absl::StrFormat("write %s", path));
  if (static_cast<size_t>(n) != text.size()) {
    return absl::DataLossError(absl::StrFormat("short write to %s", path));
  }
  return absl::OkStatus();
}

absl::Status TreeWriter::LoadModule(std::string_view module) {
  if (!tree_.is_host()) {
    return absl::UnimplementedError(
        absl::StrFormat("modules are loaded on the real root only, not below %s", tree_.root()));
  }
  return LoadKernelModule(std::string(module));
}

}  // namespace vfio_agent
