// Files below sysfs that a vendor's own driver answers: reading one can take for ever. So whoever
// reads facts says which are wanted, all at once, and is given what was answered.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "sysfs/device/pci_address.h"

namespace vfio_agent {

class Tree;

struct DriverFile {
  PciAddress device;
  PciAddress card;  // its physical function: where one function hangs, so do the others
  std::string path;
  bool operator==(const DriverFile&) const = default;
};

// By path. DeadlineExceeded where the driver does not answer, be it for this file or for one of the
// same card before it; SilentFile() tells which.
using DriverTexts = std::map<std::string, absl::StatusOr<std::string>>;
using AskDrivers = std::function<DriverTexts(const std::vector<DriverFile>&)>;

// Reads them itself, and waits for as long as it takes. `tree` outlives what is returned.
AskDrivers AskInTurn(const Tree& tree);

// For who has no use for such facts: no driver answers.
DriverTexts AskNobody(const std::vector<DriverFile>& files);

// As DeadlineExceeded: reading `file` does not return.
absl::Status Silence(const std::string& file);

// The file whose reading does not return, where that is why `path` has no text; else empty.
std::string SilentFile(const std::string& path, const absl::Status& status);

// NotFound for a file that nobody has asked for.
absl::StatusOr<std::string> TextOf(const DriverTexts& texts, const std::string& path);

}  // namespace vfio_agent
