#include "test/sim/dump.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "sysfs/fd.h"
#include "sysfs/status.h"

namespace vfio_agent::sim {
namespace {

absl::Status WriteFile(const std::string& path, mode_t mode, const std::string& text) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode | S_IWUSR));
  if (!file.valid()) return ErrnoStatus("create " + path);
  if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return ErrnoStatus("write " + path);
  }
  return absl::OkStatus();
}

absl::Status WriteNode(const std::string& path, const Node& node, const std::string& text) {
  int failed = 0;
  switch (node.kind) {
    case NodeKind::kDirectory:
      failed = ::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST;
      break;
    case NodeKind::kLink:
      failed = ::symlink(node.target.c_str(), path.c_str());
      break;
    case NodeKind::kCharacterDevice:
      failed = ::mknod(path.c_str(), S_IFCHR | node.mode, node.device_number);
      break;
    case NodeKind::kFile:
      return WriteFile(path, node.mode, text);
  }
  return failed == 0 ? absl::OkStatus() : ErrnoStatus("create " + path);
}

}  // namespace

absl::Status DumpTree(Kernel& kernel, const std::string& directory) {
  if (::mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) {
    return ErrnoStatus("mkdir " + directory);
  }
  absl::Status first_error;
  kernel.Visit([&](const std::string& path, const Node& node, const std::string& text) {
    const absl::Status status = WriteNode(directory + "/" + path, node, text);
    if (first_error.ok()) first_error = status;
  });
  return first_error;
}

}  // namespace vfio_agent::sim
