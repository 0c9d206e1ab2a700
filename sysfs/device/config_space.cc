#include "sysfs/device/config_space.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <array>

extern "C" {
#include <pci/pci.h>
}

#include "sysfs/paths.h"
#include "sysfs/proc_text.h"
#include "sysfs/status.h"
#include "sysfs/tree.h"

namespace vfio_agent {
namespace {

constexpr size_t kConfigSize = 4096;

// libpci's own handlers print, and its error handler ends the process. Ours is only reached
// from pci_init() with a method that cannot fail to be found. The attribute is spelt as libpci
// spells it: for clang that one is part of the function's type, and [[noreturn]] is not.
__attribute__((noreturn)) void OnError(char*, ...) { std::abort(); }
void OnMessage(char*, ...) {}

pci_access* MakeAccess(const Tree& tree) {
  pci_access* const access = ::pci_alloc();
  access->method = PCI_ACCESS_SYS_BUS_PCI;
  access->error = OnError;
  access->warning = OnMessage;
  access->debug = OnMessage;
  std::string root = tree.root();
  while (root.ends_with('/')) root.pop_back();
  std::string path = root + "/sys/bus/pci";
  std::string name = "sysfs.path";
  ::pci_set_param(access, name.data(), path.data());
  ::pci_init(access);
  return access;
}

}  // namespace

ConfigReader::ConfigReader(const Tree& tree)
    : tree_(tree), access_(MakeAccess(tree), ::pci_cleanup), buffer_(kConfigSize) {}

ConfigReader::~ConfigReader() = default;

absl::StatusOr<ConfigImage> ConfigReader::Read(const PciAddress& address, const TreeDir& dir) {
  const Watch* const watch = tree_.watch();
  if (watch == nullptr) return ReadUnwatched(address, dir);
  const std::string path = DeviceDir(address) + "/config";
  absl::Status known = watch->Ask(ReadKind::kBytes, path);
  absl::StatusOr<ConfigImage> image =
      known.ok() ? ReadUnwatched(address, dir) : absl::StatusOr<ConfigImage>(std::move(known));
  if (!image.ok()) {
    watch->Tell(ReadKind::kBytes, path, "", image.status());
    return image;
  }
  // Without privilege 64 bytes are read of a file that says 4096: in a record it has but those.
  const std::optional<std::string> size = watch->NoteOf(ReadKind::kSize, path);
  if (size) image->size_bytes = ParseNumber(*size, 10).value_or(image->size_bytes);
  const auto* const bytes = reinterpret_cast<const char*>(image->bytes.data());
  watch->Tell(ReadKind::kBytes, path, std::string(bytes, image->bytes.size()));
  if (image->size_bytes != image->bytes.size()) {
    watch->Tell(ReadKind::kSize, path, std::to_string(image->size_bytes));
  }
  return image;
}

absl::StatusOr<ConfigImage> ConfigReader::ReadUnwatched(const PciAddress& address,
                                                        const TreeDir& dir) {
  struct stat inside = {};
  if (::fstatat(dir.fd(), "config", &inside, AT_SYMLINK_NOFOLLOW) != 0) {
    return ErrnoStatus("stat config");
  }
  // libpci opens by path and would wait at a FIFO.
  if (!S_ISREG(inside.st_mode)) return absl::DataLossError("config: not a regular file");
  if (!tree_.is_host()) {
    struct stat by_path = {};
    const std::string path = absl::StrFormat("%s/%s/config", tree_.root(), DeviceDir(address));
    if (::stat(path.c_str(), &by_path) != 0 || by_path.st_dev != inside.st_dev ||
        by_path.st_ino != inside.st_ino) {
      return absl::PermissionDeniedError("config: the path leads out of the root");
    }
  }
  const std::unique_ptr<pci_dev, void (*)(pci_dev*)> device(
      ::pci_get_dev(access_.get(), static_cast<int>(address.domain), address.bus, address.device,
                    address.function),
      ::pci_free_dev);
  ConfigImage image{.size_bytes = static_cast<size_t>(inside.st_size)};
  for (const size_t size : std::array<size_t, 3>{kConfigSize, 256, 64}) {
    if (size > image.size_bytes && image.size_bytes != 0) continue;
    if (::pci_read_block(device.get(), 0, reinterpret_cast<u8*>(buffer_.data()),
                         static_cast<int>(size)) != 0) {
      image.bytes = std::span<const std::byte>(buffer_).first(size);
      return image;
    }
  }
  return absl::DataLossError(
      absl::StrFormat("config: fewer than 64 bytes readable of %d", image.size_bytes));
}

}  // namespace vfio_agent
