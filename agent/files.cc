#include "agent/files.h"

#include <sys/stat.h>

#include <cerrno>

#include "absl/strings/str_format.h"
#include "sysfs/status.h"

namespace vfio_agent {

absl::Status MakeDirectories(const std::string& path) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    if (::mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) {
      return ErrnoStatus(absl::StrFormat("mkdir %s", part));
    }
    if (slash == std::string::npos) return absl::OkStatus();
  }
}

}  // namespace vfio_agent
