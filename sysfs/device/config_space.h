// ConfigReader: the config space of PCI functions through libpci. The only user of libpci.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "sysfs/device/pci_address.h"

struct pci_access;

namespace vfio_agent {

class Tree;
class TreeDir;

struct ConfigImage {
  std::span<const std::byte> bytes;  // readable part; valid until the next Read()
  size_t size_bytes = 0;             // what the kernel says there is: 256 or 4096
};

// One reader for each thread. Keeps one buffer and one libpci handle, so that a node of 4,096
// functions does not cost 16 MB.
class ConfigReader {
 public:
  explicit ConfigReader(const Tree& tree);  // `tree` outlives the reader
  ~ConfigReader();
  ConfigReader(const ConfigReader&) = delete;
  ConfigReader& operator=(const ConfigReader&) = delete;

  // Reads 4096, 256 or 64 bytes: without CAP_SYS_ADMIN the kernel gives the first 64 only
  // (drivers/pci/pci-sysfs.c, pci_read_config). `dir` is the device's directory, already opened
  // inside the root: it proves that libpci, which opens by path, does not leave it.
  absl::StatusOr<ConfigImage> Read(const PciAddress& address, const TreeDir& dir);

 private:
  absl::StatusOr<ConfigImage> ReadUnwatched(const PciAddress& address, const TreeDir& dir);

  const Tree& tree_;
  std::unique_ptr<pci_access, void (*)(pci_access*)> access_;
  std::vector<std::byte> buffer_;
};

}  // namespace vfio_agent
